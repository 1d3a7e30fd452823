"""Ctrl-C while a command waits for an answer, wherever it meets the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.messages import CheckpointHistory, CheckpointId, CheckpointStatistics, JobId, JobStatus
from understudy.runtime.cli import waiting
from understudy.runtime.cli.interrupts import Interrupts
from understudy.runtime.cli.waiting import _how_far, await_reply
from understudy.runtime.clusters.job_future import JobFuture
from understudy.runtime.system.future import ActorFuture


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal: what a shell starts in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting:
    """Its finalizer is interrupted: what a finalizer raises is not seen by anybody."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


class Looked(JobFuture[str]):
    """Calls `looked` at each look; the answer comes before the fourth."""

    def __init__(self, looked: Callable[[int], object]) -> None:
        self.source: ActorFuture[str] = ActorFuture()
        super().__init__(self.source, "the answer")
        self.looks, self.looked = 0, looked

    def result(self, timeout: float | None = None) -> str:
        self.looks += 1
        self.looked(self.looks)
        if self.looks == 4:
            self.source.set("the answer")
        return super().result(0.01)


def finalized(look: int) -> None:
    if look == 1:
        Interrupting()


def test_one_in_a_finalizer_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(finalized))


def test_one_that_comes_with_the_answer_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(lambda look: look == 4 and signal.raise_signal(signal.SIGINT)))


def test_a_second_one_is_not_held_back() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(lambda _: [signal.raise_signal(signal.SIGINT) for _ in range(2)]))


def test_afterwards_it_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert await_reply("waiting", Looked(lambda _: None)) == "the answer"
    assert signal.getsignal(signal.SIGINT) is before


def test_signals_that_are_taken_over_again_are_given_back_all_the_same() -> None:
    def own(number: int, frame: object) -> None:
        """The program's."""

    before = signal.signal(signal.SIGTERM, own)
    try:
        with Interrupts() as interrupts:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as a library does
            interrupts.arm()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            assert interrupts.exit_code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_is_ignored_as_by_nohup_stays_ignored_and_ctrl_c_does_not() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGHUP)
            assert interrupts.signal is None
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_job_that_takes_too_long_to_end_has_the_status_that_it_has_then(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[float] = []
    monkeypatch.setattr(waiting, "END_SECONDS", 1.0)
    monkeypatch.setattr(
        waiting, "time", SimpleNamespace(monotonic=lambda: sum(passed), sleep=lambda _: passed.append(0.4))
    )
    asked = iter([JobStatus.RUNNING] * 8)
    cluster: Any = SimpleNamespace(details=lambda _: SimpleNamespace(status=next(asked), failures=()))
    assert waiting.await_end(cluster, JobId("job"), None, otherwise="finished") == ("running", "")
    assert len(passed) == 3


def under_way(number: int, kind: str) -> CheckpointStatistics:
    return CheckpointStatistics(CheckpointId(number), kind, "in_progress", 0, 0, 0, 4)


def how_far(*found: CheckpointStatistics) -> str:
    history = CheckpointHistory(JobId("job"), 2, 0, 0, CheckpointId(0), found)
    cluster: Any = SimpleNamespace(checkpoints=lambda _: history)
    return _how_far(cluster, JobId("job"))


def test_how_far_a_savepoint_is_says_nothing_of_a_checkpoint_beside_it() -> None:
    checkpoint, savepoint = under_way(2, "checkpoint"), under_way(1, "savepoint")
    assert how_far(checkpoint) == "waiting for its turn"
    assert how_far(checkpoint, savepoint) == "0 of 4 subtasks, 0 bytes"


def test_how_far_a_savepoint_is_says_for_which_subtasks_it_waits() -> None:
    found = replace(under_way(1, "savepoint"), awaited=("work [1]",), subtasks_total=1)
    assert how_far(found) == "0 of 1 subtasks, 0 bytes; waits for work [1]"
    found = replace(found, awaited=("a [0]", "a [1]", "b [0]"), subtasks_total=8)
    assert how_far(found) == "0 of 8 subtasks, 0 bytes; waits for a [0], a [1], b [0] and 5 more"
