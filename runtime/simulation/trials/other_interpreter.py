"""OtherInterpreter: a Python process with another hash seed, which runs a job's calm history when it is asked to.

Simulated processes share one interpreter, and so one hash seed; real ones do not. The main program reads requests from
its standard input and writes answers to its standard output, each cloudpickled and preceded by its length; it ends with
its input. Prints of user code are dropped there.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any, BinaryIO

import cloudpickle

from ...api.translation import Translation
from .committed_output import Output, Outside

ANSWER_S = 120.0
"""How long, in real time, an answer is waited for."""

_LAST_ANSWER_S = 1.0
_HALF_A_DAY, _QUARTER = 12 * 60 + 45, 15
"""In minutes."""

_LENGTH_BYTES = 8
_NOTHING = cloudpickle.dumps({})


@dataclass(frozen=True, slots=True)
class CalmRun:
    """A job, and the cluster that it is to run in; nothing goes wrong there. `limit_ms`: of virtual time."""

    sys_path: tuple[str, ...]
    translation: bytes
    """Pickled again, since its classes are found only once `sys_path` is set."""
    task_managers: int
    slots: int
    settings: dict[str, Any]
    limit_ms: float
    outside: bytes = _NOTHING
    """Pickled again, too."""

    @staticmethod
    def of(translation: Translation, outside: Outside, *more: Any) -> CalmRun:
        run = CalmRun(tuple(sys.path), cloudpickle.dumps(translation), *more)
        return replace(run, outside=cloudpickle.dumps(outside))


@dataclass(frozen=True, slots=True)
class CalmAnswer:
    """What the job has committed there. `problem`: why nothing can be compared, if nothing can."""

    output: Output
    problem: str = ""


def elsewhere(here: time.struct_time | None = None) -> str:
    """A time zone of another hour and another day, as in the environment variable TZ. `here`: local time, now if None.

    As far away as the day is long before it or behind it, and half a day at least, so that the date of today differs at
    any time; eastwards where this is west of UTC, as no zone may be a day and more away from that.
    """
    here = here or time.localtime()
    if here.tm_gmtoff > 0:
        away = -max(_HALF_A_DAY, 60 * (here.tm_hour + 1) + _QUARTER)
    else:
        away = max(_HALF_A_DAY, 60 * (24 - here.tm_hour) + _QUARTER)
    minutes = here.tm_gmtoff // 60 + away
    hours, rest = divmod(abs(minutes), 60)
    return f"<elsewhere>{'-' if minutes > 0 else ''}{hours}:{rest:02}"  # of POSIX, which counts westwards


class OtherInterpreter:
    """Starts at once, and imports what it needs while the caller does other things."""

    def __init__(self, hash_seed: int, *, is_elsewhere: bool = True) -> None:
        """`is_elsewhere`: in another time zone than this process."""
        here = {**os.environ, "TZ": elsewhere()} if is_elsewhere else dict(os.environ)
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**here, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path},
        )
        self._turn = Lock()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, run: CalmRun) -> Future[CalmAnswer]:
        """The answer; one without an output if the process ends instead."""
        answer: Future[CalmAnswer] = Future()
        Thread(target=self._exchange, args=(run, answer), daemon=True, name="other-interpreter").start()
        return answer

    def close(self) -> None:
        """End it; open questions get an answer that says so."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._turn.acquire(timeout=_LAST_ANSWER_S):  # not where a process that it has begun keeps its output open
            self._process.stdout.close()
            with suppress(BrokenPipeError):  # a request that was not written to its end
                self._process.stdin.close()
            self._turn.release()

    def _exchange(self, run: CalmRun, answer: Future[CalmAnswer]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with self._turn:
                _write(self._process.stdin, run)
                answer.set_result(_read(self._process.stdout))
        except Exception as error:  # noqa: BLE001  (whatever became of the process or of what it said)
            answer.set_result(CalmAnswer({}, f"{type(error).__name__}: {error}"))


_kept: dict[int, OtherInterpreter] = {}


def kept_interpreter(hash_seed: int) -> OtherInterpreter:
    """One for all tests of this process, which ends with it."""
    found = _kept.get(hash_seed)
    if found is None or not found.is_alive:
        found = _kept[hash_seed] = OtherInterpreter(hash_seed)
        atexit.register(found.close)
    return found


# ---- the other process


def main() -> None:
    """Answer until there are no more requests."""
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        while True:
            try:
                run = _read(requests)
            except EOFError:
                return
            _write(answers, _answer(run))


def _answer(run: CalmRun) -> CalmAnswer:
    from ..world.cluster import SimulatedCluster
    from .tried import try_once

    sys.path[:] = run.sys_path
    try:
        translation, outside = cloudpickle.loads(run.translation), cloudpickle.loads(run.outside)
        with SimulatedCluster(run.task_managers, run.slots, seed=0, **run.settings) as cluster:
            tried = try_once(cluster, lambda parallelism, number: translation, run.limit_ms, lambda *_: (), (), outside)
        if tried.status != "finished":
            return CalmAnswer({}, f"the job is {tried.status} there; {tried.failure}")
        cloudpickle.dumps(tried.output)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  (what a user's module raises when it is imported, pytest's skips too)
        return CalmAnswer({}, f"{type(error).__name__}: {error}")
    return CalmAnswer(dict(tried.output))


def _write(stream: BinaryIO | Any, value: Any) -> None:
    data = cloudpickle.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    stream.flush()


def _read(stream: BinaryIO | Any) -> Any:
    head = stream.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        raise EOFError("the other interpreter has ended")
    return cloudpickle.loads(stream.read(int.from_bytes(head, "big")))


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
