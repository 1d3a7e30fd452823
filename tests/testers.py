"""Testers: processes that are forked once all tests are collected, and share them out among themselves.

pytest-xdist lets every worker import and collect all tests; here that is done once, and what was imported is common
memory. The process that has collected hands out one test at a time, and tells pytest what came of it: so --last-failed,
--durations, -x, --junitxml and the rest see one run. A tester

- keeps to a file while it has tests left, so that a fixture of a module is set up once; when no file is left, it takes
  half of what the busiest one has before it;
- has streams, temporary folders and session fixtures of its own;
- that dies is a failure of the test that it ran. Another one goes on with the rest.

It asks what follows when it tears down, because pytest keeps the fixtures that the next test needs. Each is a process
group: Ctrl-C reaches the collecting process alone, which passes it on once, so that no fixture is interrupted while it
is being torn down. When that process is killed, they end as by Ctrl-C.

    pytest --testers 4 --cores 2      # tests/conftest.py: four for the tests of processes, two for those that compute
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from understudy.runtime.clusters.template import forked
from understudy.runtime.simulation.trials.budget import BUDGET

from .shared_out import Group, Queue

_PR_SET_PDEATHSIG = 1
_SECONDS = "testers/seconds"
"""In pytest's cache: how long each group took when it ran last."""


@dataclass
class _Tester:
    """One, to the process that has collected."""

    number: int
    queue: Queue
    pid: int
    connection: Connection
    ended: list[int]
    """A descriptor that can be read when the process has ended, where the system has such ones."""
    running: int | None = None
    follows: int | None = None
    """Handed out already, and not begun."""
    last: int | None = None
    said_goodbye: bool = False

    def hand_out(self) -> int | None:
        test = self.queue.next(self.number)
        if self.running is None:
            self.running = test
        else:
            self.follows = test
        return test

    def done(self) -> None:
        self.last, self.running, self.follows = self.running, self.follows, None

    def close(self) -> None:
        self.connection.close()
        for fd in self.ended:
            os.close(fd)


@dataclass
class Testers:
    """The collecting process' side."""

    session: pytest.Session
    crews: Sequence[tuple[int, Queue]]
    """How many testers each queue has."""
    groups: dict[int, str]
    """By test: what it is timed as."""
    seconds: Counter[str] = field(default_factory=Counter)
    _alive: list[_Tester] = field(default_factory=list)

    def run(self) -> None:
        """Raises what pytest's own loop raises."""
        if len(threading.enumerate()) > 1:
            names = ", ".join(each.name for each in threading.enumerate())
            raise pytest.UsageError(
                f"testers are forked once tests are collected, and a fork has no threads; some run already: {names}. "
                "Start them in a test or a fixture, not when a module is imported"
            )
        try:
            for count, queue in self.crews:
                for _ in range(count):
                    self._alive.append(self._fork(len(self._alive), queue))
            while self._alive:
                self._turn()
        except BaseException:
            self._interrupt()
            raise
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _fork(self, number: int, queue: Queue) -> _Tester:
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = Pipe()
        collected_by = os.getpid()
        pid = forked()
        if pid == 0:
            ours.close()
            for other in self._alive:
                other.close()
            _Process(self.session, theirs, number).live(collected_by)
        theirs.close()
        return _Tester(number, queue, pid, ours, [os.pidfd_open(pid)] if hasattr(os, "pidfd_open") else [])

    def _turn(self) -> None:
        by_sign: dict[Any, _Tester] = {}
        for tester in self._alive:
            by_sign |= dict.fromkeys([tester.connection, *tester.ended], tester)
        for tester in {id(each): each for each in (by_sign[sign] for sign in wait(list(by_sign)))}.values():
            try:
                if tester.connection.poll():
                    self._hear(tester, *tester.connection.recv())
                else:
                    self._over(tester)
            except (EOFError, ConnectionError):
                self._over(tester)

    def _hear(self, tester: _Tester, what: str, *rest: Any) -> None:
        match what:
            case "what follows":
                tester.connection.send(tester.hand_out())
            case "done":
                self._log(tester, *rest)
                tester.done()
            case "goodbye":
                tester.said_goodbye = True
                BUDGET.ran += rest[0]
                BUDGET.violations += rest[1]
            case "exit":
                pytest.exit(*rest)

    def _log(self, tester: _Tester, reports: list[Any], noticed: list[tuple[Any, ...]]) -> None:
        assert tester.running is not None
        hook = self.session.config.hook
        for text, category, filename, line, when, nodeid, location in noticed:
            kind = type(category, (Warning,), {})
            hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warnings.WarningMessage(kind(text), kind, filename, line),
                    "when": when,
                    "nodeid": nodeid,
                    "location": location,
                }
            )
        item = self.session.items[tester.running]
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for each in reports:
            report = hook.pytest_report_from_serializable(config=item.config, data=each) if type(each) is dict else each
            self.seconds[self.groups[tester.running]] += report.duration
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self.session.shouldfail or self.session.shouldstop:
            for _, queue in self.crews:
                queue.close()

    def _over(self, tester: _Tester) -> None:
        """The process has ended."""
        code = os.waitstatus_to_exitcode(os.waitpid(tester.pid, 0)[1])
        tester.close()
        self._alive.remove(tester)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if tester.running is not None:
            if tester.follows is not None:
                tester.queue.put_back(tester.number, tester.follows)
            self._fail(tester, tester.running, f"the tester that ran it {how}")
            self._alive.append(self._fork(tester.number, tester.queue))
        elif code != 0 or not tester.said_goodbye:
            if tester.last is None:
                raise RuntimeError(f"tester {tester.number} {how}, and has run no test")
            self._fail(tester, tester.last, f"the tester that ran it, as its last one, {how} when all was over")

    def _fail(self, tester: _Tester, test: int, text: str) -> None:
        item = self.session.items[test]
        tester.running = test
        self._log(tester, [pytest.TestReport(item.nodeid, item.location, {item.name: 1}, "failed", text, "call")], [])

    def _interrupt(self) -> None:
        """They tear down what they have set up. At a second Ctrl-C they are killed."""
        ran = [self.session.items[each.running].nodeid for each in self._alive if each.running is not None]
        if ran and (reporter := self.session.config.pluginmanager.get_plugin("terminalreporter")):
            reporter.write_line(f"\ninterrupted: {', '.join(ran)}")
        try:
            self._end_all(signal.SIGINT)
        except KeyboardInterrupt:
            self._end_all(signal.SIGKILL)
            raise

    def _end_all(self, number: int) -> None:
        for tester in self._alive:
            tester.connection.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(tester.pid, number)
        for tester in self._alive:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(tester.pid, 0)


# ---------------------------------------------------------------------------- in a tester


class _Following:
    """In place of the next test: which one it is, is asked when pytest wants to know what it needs."""

    def __init__(self, ask: Callable[[], pytest.Item | None]) -> None:
        self._ask = ask
        self._asked = False
        self._item: pytest.Item | None = None

    def item(self) -> pytest.Item | None:
        if not self._asked:
            self._asked = True
            self._item = self._ask()
        return self._item

    def listchain(self) -> list[Any]:
        item = self.item()
        return item.listchain() if item else []


class _Process:
    """A tester, and the plug-in of pytest in it."""

    def __init__(self, session: pytest.Session, connection: Connection, number: int) -> None:
        self._session = session
        self._connection = connection
        self._number = number
        self._noticed: list[tuple[Any, ...]] = []

    def live(self, collected_by: int) -> None:
        """Never returns. What was imported is not taken apart: that would copy all the memory that is common."""
        code = 2
        try:
            self._settle(collected_by)
            self._run()
            self._connection.send(("goodbye", BUDGET.ran, BUDGET.violations))
            code = 0
        except pytest.exit.Exception as stop:
            self._connection.send(("exit", str(stop), stop.returncode))
        except (KeyboardInterrupt, EOFError, BrokenPipeError):
            pass
        except BaseException:  # noqa: BLE001 - of this process nobody else tells
            traceback.print_exc()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with contextlib.suppress(BaseException):
                self._session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(code)

    def _settle(self, collected_by: int) -> None:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != collected_by:
            raise KeyboardInterrupt
        config = self._session.config
        capture = config.pluginmanager.get_plugin("capturemanager")
        if capture.is_globally_capturing():  # into files of its own: forked ones have one place to write at
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()
        temporary = config._tmp_path_factory  # type: ignore[attr-defined]
        temporary._basetemp = temporary.getbasetemp() / f"tester{self._number}"
        temporary._basetemp.mkdir(exist_ok=True)
        BUDGET.ran = BUDGET.violations = 0
        config.pluginmanager.register(self, "tester")
        self._noticed.clear()  # warnings from before: who registers hears them again

    def _run(self) -> None:
        item = self._ask()
        while item is not None:
            following = _Following(self._ask)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following.item()

    def _ask(self) -> pytest.Item | None:
        try:
            self._connection.send(("what follows",))
            test = self._connection.recv()
        except (EOFError, OSError):  # nobody listens any more
            return None
        return None if test is None else self._session.items[test]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Any) -> bool:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        nextitem.item()
        hook = item.config.hook
        told = [
            each if each.passed else hook.pytest_report_to_serializable(config=item.config, report=each)
            for each in reports
        ]
        self._connection.send(("done", told, self._noticed))
        self._noticed = []
        return True

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        found = warning_message
        self._noticed.append(
            (str(found.message), found.category.__name__, found.filename, found.lineno, when, nodeid, location)
        )


# ---------------------------------------------------------------------------- for conftest.py


def run(session: pytest.Session, crews: Sequence[tuple[int, Sequence[Group]]]) -> None:
    """All tests of all groups; each crew has a number of testers, and groups."""
    queues = [(min(count, sum(len(each.tests) for each in groups)), _queue(session, groups)) for count, groups in crews]
    names = {test: group.name for _, groups in crews for group in groups for test in group.tests}
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.showfspath = False  # tests of several files come in turn
    testers = Testers(session, queues, names)
    try:
        testers.run()
    finally:
        if (cache := cache_of(session.config)) is not None:
            cache.set(_SECONDS, _seconds(session.config) | testers.seconds)


def _queue(session: pytest.Session, groups: Iterable[Group]) -> Queue:
    """Those that stay whole first, then the longest, as far as the last runs tell; the others before them."""
    seconds = _seconds(session.config)
    return Queue(sorted(groups, key=lambda each: (not each.whole, -seconds.get(each.name, float("inf")))))


def _seconds(config: pytest.Config) -> dict[str, float]:
    cache = cache_of(config)
    return {} if cache is None else dict(cache.get(_SECONDS, {}))


def cache_of(config: pytest.Config) -> pytest.Cache | None:
    """None with `-p no:cacheprovider`."""
    return getattr(config, "cache", None)
