"""TrialFaults: rows that a sink holds back are lost between a barrier and its notice, and histories come there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from understudy import Operator, OperatorListState, StreamEnvironment, TwoPhaseCommitSink
from understudy.messages import CheckpointConfig, CheckpointId
from understudy.runtime.oracles import exactly_once
from understudy.runtime.simulation.trials.held_by import advice_on_lists
from understudy.runtime.simulation.trials.job_trial import JobTrial
from understudy.runtime.simulation.trials.trial_faults import DECK, TrialFaults
from understudy.runtime.simulation.world.faults import KillAtCheckpoint, KillProcess, SlowStorage
from understudy.testing import JOB_MANAGER, TransactionalLog

LOG = TransactionalLog("rows")
HISTORIES = 12


class HeldInMemory(Operator):
    """What waits for its checkpoint is in an attribute."""

    def open(self) -> None:
        self.rows: list[Any] = []
        self.pending: list[Any] = []

    def process_batch(self, batch: Any, out: Any) -> None:
        self.rows += batch

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self.pending += self.rows
        self.rows = []

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        LOG.write(self.pending)
        self.pending = []


class BehindTheBarrier(HeldInMemory):
    """Writes at the notice what has come since the barrier, too."""

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self.pending = self.rows


class Cleared(HeldInMemory):
    """Forgets at the notice what has come since the barrier."""

    staged = OperatorListState(object)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self.staged.update(list(self.rows))

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        LOG.write(list(self.staged.get()))
        self.rows.clear()


class Dropped(TwoPhaseCommitSink[str]):
    """Aborts what an earlier attempt has prepared: does the source not send it again?"""

    def begin_transaction(self) -> str:
        return LOG.begin()

    def write(self, transaction: str, batch: Any) -> None:
        LOG.append(transaction, batch)

    def pre_commit(self, transaction: str) -> None:
        LOG.prepare(transaction)

    def commit(self, transaction: str) -> None:
        LOG.commit(transaction)

    def recover_and_commit(self, transaction: str) -> None:
        LOG.abort(transaction)

    def abort(self, transaction: str) -> None:
        LOG.abort(transaction)


class Whole(Dropped):
    """As it should be."""

    def recover_and_commit(self, transaction: str) -> None:
        LOG.commit(transaction)


def _caught(sink: type[Operator]) -> list[int]:
    """The seeds of the first histories in which the rows are not those of a run without faults."""
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(40)).sink_to(sink)
    trial = JobTrial(env)

    def judge(status: str, output: Any) -> Any:
        violation = exactly_once(output["rows"], range(40), None)
        return [] if violation is None else [violation]

    runs = (trial.run(seed, trial.faults_of(seed), (), judge) for seed in range(HISTORIES))
    return [tried.seed for tried in runs if tried.violations]


@pytest.mark.parametrize("sink", [HeldInMemory, BehindTheBarrier, Cleared, Dropped])
def test_what_is_lost_around_a_checkpoint_is_found_in_a_few_histories(sink: type[Operator]) -> None:
    assert len(_caught(sink)) >= 3


def test_a_sink_that_loses_nothing_survives_them() -> None:
    assert _caught(Whole) == []


CONFIG = CheckpointConfig(interval_ms=1_000, timeout_ms=20_000, directory="sim://storage")


def test_seeds_are_dealt_out_like_cards() -> None:
    faults = TrialFaults(2, 12_000.0, CONFIG)
    for deck in range(5):
        dealt: Counter[Any] = Counter()
        for seed in range(deck * len(DECK), (deck + 1) * len(DECK)):
            kills = [each for each in faults.of(seed) if isinstance(each, KillAtCheckpoint)]
            slow = [each for each in faults.of(seed) if isinstance(each, SlowStorage) and each.for_ms == 12_000]
            assert len(kills) <= 1
            assert len(slow) <= 1
            dealt[bool(slow), kills[0].moment if kills else None] += 1
        assert dealt == Counter(DECK)


def test_they_come_in_order_and_never_to_the_job_manager() -> None:
    for seed in range(100):
        faults = TrialFaults(2, 12_000.0, CONFIG).of(seed)
        assert [each.at_ms for each in faults] == sorted(each.at_ms for each in faults)
        assert not any(isinstance(each, KillProcess) and each.who == JOB_MANAGER for each in faults)


def test_no_checkpoint_is_so_slow_that_it_expires() -> None:
    config = CheckpointConfig(interval_ms=60_000, timeout_ms=20_000, directory="sim://storage")
    for seed in range(len(DECK)):
        for fault in TrialFaults(2, 600_000.0, config).of(seed):
            if isinstance(fault, SlowStorage) and fault.for_ms == 600_000:
                assert fault.extra_ms <= 2_000


def test_a_list_of_ours_is_not_named_as_what_an_attribute_is_made_of() -> None:
    assert advice_on_lists(Dropped()) == ""
    assert "'staged' ('split')" in advice_on_lists(Cleared())
