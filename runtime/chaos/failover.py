"""Failover: the leader of a cluster is killed, again and again, and whoever waited goes on with its job.

Real processes, real signals, and a real ZooKeeper or a shared folder. `make failover` runs it:

    python -m understudy.runtime.chaos.failover --takeovers 50 --mode zookeeper

The last line is `N takeovers, M exact`; the exit code is 1 unless all were. A takeover is exact when the output, read
by another program all the while, shows each record once, no checkpoint id is used twice, no announced checkpoint is
lost, and, in the end, not a record is missing.
"""

from __future__ import annotations

import contextlib
import json
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from ..high_availability.settings import CLUSTER_ID, KEY_FILE, QUORUM, RECOVERY_MODE, SESSION_TIMEOUT, STORAGE_DIR
from ..high_availability.trial_zookeeper import TrialZooKeeper, free_peers
from ..oracles import exactly_once
from ..system import CurveKeys
from .leftovers import Marked, marked
from .output_reader import OutputReader, visible_files
from .workload import EndFile, expected, read_file

PATIENCE_S = 120.0
"""How long anything may take that is waited for."""
STANDBYS = 1
END_MARGIN_S = 5.0


@dataclass(frozen=True, slots=True)
class FailoverOptions:
    takeovers: int
    mode: str = "zookeeper"
    seed: int = 0
    session_timeout_ms: int = 5_000
    task_managers: int = 1
    records_per_second: float = 500.0
    checkpoint_interval_ms: int = 100
    programs: tuple[str, ...] = ("understudy.runtime.chaos.candidate",)
    """The modules that processes run which want to lead; they take turns."""


@dataclass(slots=True)
class FailoverReport:
    """What came of a run."""

    takeovers: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)
    """With the number of takeovers by then."""
    stepped_down: int = 0
    """How many leaders did so by themselves, as on a machine that had no time for them."""
    to_lead_s: list[float] = field(default_factory=list)
    """From the kill until the next one leads."""
    to_run_s: list[float] = field(default_factory=list)
    """From the kill until all tasks run again."""

    @property
    def exact(self) -> int:
        return self.takeovers - len({number for number, _ in self.problems})

    @property
    def is_good(self) -> bool:
        return not self.problems

    def lines(self, session_timeout_ms: int) -> Iterator[str]:
        for number, problem in self.problems:
            yield f"after takeover {number}: {problem}"
        if self.to_lead_s and self.to_run_s:
            lead, run = statistics.median(self.to_lead_s), statistics.median(self.to_run_s)
            yield (
                f"median: {lead:.2f} s from the kill until the next one leads (session timeout "
                f"{session_timeout_ms / 1000:g} s), {run:.2f} s until all tasks run"
            )
        if self.stepped_down:
            yield f"besides, {self.stepped_down} leaders stepped down by themselves: this machine had no time for them"
        yield f"{self.takeovers} takeovers, {self.exact} exact"


class _Candidate:
    """One process; what it says goes into the queue."""

    def __init__(
        self, number: int, program: str, argument: str, log: Path, said: queue.Queue[tuple[int, list[str]]]
    ) -> None:
        self.number = number
        self._said = said
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", program, argument],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._said.put((self.number, line.split()))
        self._said.put((self.number, ["gone"]))


class _SteppedDown(Exception):
    """The leader did, by itself."""


class Failover:
    """One run, in a folder of its own."""

    def __init__(self, options: FailoverOptions, folder: Path, config: Mapping[str, str]) -> None:
        self._options = options
        self._folder = folder
        self._output = folder / "output"
        self._end = EndFile(folder / "end")
        self._argument = json.dumps(
            {
                "config": dict(config),
                "output": str(self._output),
                "checkpoints": str(folder / "checkpoints"),
                "end": str(folder / "end"),
                "records_per_second": options.records_per_second,
                "checkpoint_interval_ms": options.checkpoint_interval_ms,
                "task_managers": options.task_managers,
            }
        )
        self._random = random.Random(options.seed)
        self._said: queue.Queue[tuple[int, list[str]]] = queue.Queue()
        self._candidates: dict[int, _Candidate] = {}
        self._started = 0
        self._newest_id = 0
        self._count: int | None = None
        self.report = FailoverReport()

    def run(self, say: Callable[[str], None]) -> FailoverReport:
        with OutputReader(self._output) as reader, contextlib.ExitStack() as stack:
            stack.callback(self._kill_all)
            for _ in range(1 + STANDBYS):
                self._start()
            killed_s: float | None = None
            while True:
                try:
                    leader = self._await("leads")
                    self._leads(leader, killed_s, say)
                    self._judge(reader)
                    if self.report.takeovers == self._options.takeovers:
                        self._finish(leader, reader)
                        return self.report
                    self._let_it_work(leader)
                    killed_s = time.monotonic()
                    self._candidates.pop(leader).kill()
                    self._start()
                except _SteppedDown:
                    self.report.stepped_down += 1
                    killed_s = None

    # -- inside

    def _start(self) -> None:
        self._started += 1
        log = self._folder / "log"
        program = self._options.programs[self._started % len(self._options.programs)]
        self._candidates[self._started] = _Candidate(self._started, program, self._argument, log, self._said)

    def _kill_all(self) -> None:
        for candidate in self._candidates.values():
            candidate.kill()

    def _leads(self, leader: int, killed_s: float | None, say: Callable[[str], None]) -> None:
        """It has won: until all tasks run."""
        if killed_s is not None:
            self.report.takeovers += 1
            self.report.to_lead_s.append(time.monotonic() - killed_s)
            say(f"takeover {self.report.takeovers}: {self.report.to_lead_s[-1]:.2f} s, at id {self._newest_id}")
        announced = self._newest_id
        self._await("runs", leader)
        if killed_s is not None:
            self.report.to_run_s.append(time.monotonic() - killed_s)
        if self._restored < announced:
            self._problem(f"checkpoint {announced} was announced, and the next leader has restored {self._restored}")

    def _let_it_work(self, leader: int) -> None:
        """Until some checkpoints are complete, and then for a moment: any moment of a checkpoint's."""
        for _ in range(self._random.randint(1, 3)):
            self._await("completed", leader)
        time.sleep(self._random.uniform(0, 2 * self._options.checkpoint_interval_ms / 1000))

    def _finish(self, leader: int, reader: OutputReader) -> None:
        if self._count is None:
            self._count = reader.next_index + int(END_MARGIN_S * self._options.records_per_second)
            self._end.write(self._count)
        self._await("finished", leader)
        committed = [record for path in visible_files(self._output) for record in read_file(path)]
        violation = exactly_once(committed, expected(self._count))
        if violation is not None:
            self._problem(str(violation))
        self._judge(reader)

    def _judge(self, reader: OutputReader) -> None:
        seen, reader.violations = reader.violations, []
        for violation in seen:
            self._problem(str(violation))

    def _problem(self, text: str) -> None:
        self.report.problems.append((self.report.takeovers, text))

    def _await(self, wanted: str, of: int | None = None) -> int:
        """Until somebody says it; returns who."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                who, (what, *more) = self._said.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"nobody said {wanted!r} within {PATIENCE_S:.0f} s{self._log()}") from None
            if who not in self._candidates:
                continue
            if what == "completed":
                self._completed(int(more[0]))
            elif what == "runs":
                self._restored = int(more[0])
            elif what == "deposed":
                self._candidates.pop(who)
                self._start()
                raise _SteppedDown
            elif what == "gone":
                raise RuntimeError(f"process {who} ended by itself{self._log()}")
            if what == wanted and of in (None, who):
                return who

    def _completed(self, checkpoint_id: int) -> None:
        if checkpoint_id <= self._newest_id:
            self._problem(f"checkpoint {checkpoint_id} has completed after {self._newest_id}")
        self._newest_id = max(self._newest_id, checkpoint_id)

    def _log(self) -> str:
        with contextlib.suppress(OSError):
            return f"; they have logged:\n{(self._folder / 'log').read_text()[-4_000:]}"
        return ""


@contextlib.contextmanager
def cluster_of_one_run(options: FailoverOptions, folder: Path, quorum: str | None = None) -> Iterator[dict[str, str]]:
    """Its configuration, with a ZooKeeper of its own unless one is given."""
    key = folder / "key"
    CurveKeys.generate().save(key)
    config = {
        RECOVERY_MODE: options.mode,
        STORAGE_DIR: str(folder / "ha"),
        KEY_FILE: str(key),
        CLUSTER_ID: f"failover-{folder.name.replace('_', '-')}",
        SESSION_TIMEOUT: str(options.session_timeout_ms),
    }
    if options.mode != "zookeeper":
        yield config
    elif quorum is not None:
        yield {**config, QUORUM: quorum}
    else:
        server = TrialZooKeeper(folder / "zookeeper", free_peers(1)[0])
        server.start()
        try:
            server.await_ready()
            yield {**config, QUORUM: server.address}
        finally:
            server.close()


def run_failover(
    options: FailoverOptions, folder: Path, say: Callable[[str], None] = lambda _: None, quorum: str | None = None
) -> FailoverReport:
    """The whole run, in this folder. Raises RuntimeError and TimeoutError when it cannot go on."""
    temporary = folder / "tmp"
    temporary.mkdir()
    with cluster_of_one_run(options, folder, quorum) as config, marked(temporary) as ours:
        report = Failover(options, folder, config).run(say)
        left = _left(ours)
        if left:
            report.problems.append((report.takeovers, f"processes were left behind: {'; '.join(left)}"))
        return report


def _left(ours: Marked) -> list[str]:
    return ours.wait_for_processes(PATIENCE_S)


@click.command()
@click.option("--takeovers", default=50, show_default=True, type=click.IntRange(1))
@click.option("--mode", default="zookeeper", show_default=True, type=click.Choice(["zookeeper", "storage"]))
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--session-timeout-ms", default=5_000, show_default=True, type=click.IntRange(500))
@click.option("--quorum", help="A ZooKeeper that runs; without it one is started.")
def main(takeovers: int, mode: str, seed: int, session_timeout_ms: int, quorum: str | None) -> None:
    """Kill the leader again and again while its job runs."""
    options = FailoverOptions(takeovers, mode, seed, session_timeout_ms)
    with tempfile.TemporaryDirectory(prefix="understudy-failover-", ignore_cleanup_errors=True) as folder:
        report = run_failover(options, Path(folder), click.echo, quorum)
    for line in report.lines(session_timeout_ms):
        click.echo(line)
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
