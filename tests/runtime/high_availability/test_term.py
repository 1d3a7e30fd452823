"""Term: how long a leader is sure that it leads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import LeaderSessionId
from understudy.runtime.high_availability.settings import HighAvailabilitySettings
from understudy.runtime.high_availability.storage_election import StorageElection, StorageLeadership
from understudy.runtime.high_availability.storage_epochs import Epoch, EpochTerm, StorageEpochs
from understudy.runtime.high_availability.term import SURE_FOR, Term, elapsed_s
from understudy.runtime.high_availability.zookeeper_election import ZooKeeperLeadership
from understudy.state import CheckpointStorage

from .clusters import config

PATIENT_MS = 600_000
"""So that no thread looks while a test does."""


def test_an_older_answer_that_comes_later_shortens_nothing() -> None:
    clock = [0.0]
    term = Term(LeaderSessionId("1"), 9.0, 0.0, lambda: clock[0], lambda: clock[0])
    term.renew(5.0)
    term.renew(1.0)
    clock[0] = 10.0
    assert term.is_sure
    clock[0] = 11.5
    assert not term.is_sure


def test_a_leader_that_nobody_answers_says_why_it_is_over() -> None:
    clock, over, looked = [0.0], threading.Event(), threading.Event()
    why: list[str] = []

    def look() -> float:
        looked.set()
        raise OSError("its disk is full")

    term = Term(LeaderSessionId("1"), 0.12, 0.0, lambda: clock[0], look)
    term.on_lost(lambda reason: (why.append(reason), over.set()))
    term.begin()
    assert looked.wait(10)
    clock[0] = 1.0
    assert over.wait(10)
    assert why == ["it was not renewed for longer than 0.1 s: its disk is full"]
    term.end()


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux has this clock")
def test_a_term_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """`time.monotonic` stands still there, and others lead meanwhile."""
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1_000.0 if clock == time.CLOCK_BOOTTIME else 10.0)
    term = Term(LeaderSessionId("one"), 60.0, 10.0, elapsed_s, elapsed_s)
    assert not term.is_sure


class SlowClock:
    """Each request takes five seconds."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self) -> None:
        self.now_s += 5.0


class SlowStorage(CheckpointStorage):
    clock = SlowClock()

    def write_sealed(self, path: str, data: bytes) -> None:
        super().write_sealed(path, data)
        self.clock.pass_by()

    def create_sealed(self, path: str, data: bytes) -> None:
        super().create_sealed(path, data)
        self.clock.pass_by()


class SlowClient:
    """Of ZooKeeper, as far as a leader asks whether its node is there."""

    def __init__(self, clock: SlowClock) -> None:
        self._clock = clock

    def add_listener(self, listener: Callable[[Any], None]) -> None:
        pass

    def exists_async(self, _node: str) -> SlowClient:
        return self

    def get(self, timeout: float) -> object:
        assert timeout > 0
        self._clock.pass_by()
        return "a status"


def test_with_shared_storage_an_answer_counts_from_when_its_word_was_sent(tmp_path: Path) -> None:
    """A candidate may have seen the word as soon as it was sent, and counts the silence from there."""
    storage, term = SlowStorage(str(tmp_path)), EpochTerm(LeaderSessionId("one"))
    storage.clock = clock = SlowClock()
    epochs = StorageEpochs(storage)
    assert epochs.claim(1, term)
    settings = HighAvailabilitySettings.of(config(tmp_path, timeout_ms=PATIENT_MS))
    leadership = StorageLeadership(epochs, settings, Epoch(1, term), clock(), clock)
    clock.now_s = 100.0
    assert leadership._look() == 100.0
    assert clock() == 105.0


def test_an_epoch_that_was_won_slowly_is_sure_from_when_its_file_was_sent(tmp_path: Path) -> None:
    storage = SlowStorage(str(tmp_path))
    storage.clock = clock = SlowClock()
    settings = HighAvailabilitySettings.of(config(tmp_path, timeout_ms=PATIENT_MS))
    leadership = StorageElection(settings, storage, clock).campaign(threading.Event())
    assert leadership is not None
    assert clock() > 5.0
    clock.now_s = PATIENT_MS / 1000 * SURE_FOR - 1.0
    assert leadership.is_sure
    clock.now_s += 2.0
    assert not leadership.is_sure
    leadership.resign()


def test_with_zookeeper_an_answer_counts_from_when_its_question_was_sent(tmp_path: Path) -> None:
    clock = SlowClock()
    settings = HighAvailabilitySettings.of(config(tmp_path, "zk:2181", timeout_ms=PATIENT_MS))
    client: Any = SlowClient(clock)
    leadership = ZooKeeperLeadership(client, settings, "/leader/candidate-0000000001", clock(), clock, "")
    clock.now_s = 100.0
    assert leadership._look() == 100.0
    assert clock() == 105.0
    assert leadership._term.end()
