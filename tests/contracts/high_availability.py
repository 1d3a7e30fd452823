"""HighAvailabilityContract: what every HighAvailability must do. Subclass it and say how to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from understudy.messages import (
    CheckpointConfig,
    CheckpointId,
    CheckpointRetention,
    JobGraph,
    JobId,
    JobStatus,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubmitJob,
)
from understudy.state.checkpoints.checkpoint_ids import CheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.checkpoints.high_availability import HighAvailability


def submitted(name: str = "job", retained: int = 1) -> SubmitJob:
    checkpoints = CheckpointConfig("", retained=retained, retention=CheckpointRetention.NEVER)
    restart = RestartStrategyConfig(RestartStrategyKind.NONE)
    return SubmitJob(JobGraph(JobId(name), name, (), (), checkpoints, restart), 1, 1)


def completed(number: int, *, is_savepoint: bool = False) -> CompletedCheckpoint:
    return CompletedCheckpoint(JobId("job"), CheckpointId(number), 1, 2, 0, {}, is_savepoint)


def drawn(ids: CheckpointIdCounter, count: int = 3) -> list[CheckpointId]:
    return [ids.get_and_increment() for _ in range(count)]


def numbers(checkpoints: Iterable[CompletedCheckpoint]) -> list[int]:
    return [each.checkpoint_id for each in checkpoints]


class HighAvailabilityContract(ABC):
    """Subclass as `class TestMine(HighAvailabilityContract)`, with `make`."""

    @abstractmethod
    def make(self) -> HighAvailability:
        """That of a new session, with nothing kept by earlier ones."""

    def test_no_two_sessions_have_the_same_id(self) -> None:
        one, other = self.make(), self.make()
        assert one.session == one.session != other.session

    def test_ids_begin_where_they_are_wanted_and_increase(self) -> None:
        ids = drawn(self.make().add_job(submitted(), CheckpointId(8)).checkpoint_ids)
        assert ids[0] == 8
        assert ids == sorted(set(ids))

    def test_an_id_is_never_drawn_twice_though_the_job_is_added_again(self) -> None:
        kept = self.make()
        before = drawn(kept.add_job(submitted()).checkpoint_ids)
        after = drawn(kept.add_job(submitted(), CheckpointId(2)).checkpoint_ids)
        assert max(before) < min(after)

    def test_setting_the_count_back_repeats_no_id(self) -> None:
        ids = self.make().add_job(submitted()).checkpoint_ids
        before = drawn(ids)
        ids.set_count(CheckpointId(1))
        assert ids.get_and_increment() > max(before)
        ids.set_count(CheckpointId(50))
        assert ids.get_and_increment() == 50

    def test_a_job_that_is_added_again_has_its_checkpoints(self) -> None:
        kept = self.make()
        kept.add_job(submitted()).checkpoints.add(completed(3))
        assert numbers(kept.add_job(submitted()).checkpoints.restorable()) == [3]

    def test_as_many_checkpoints_are_retained_as_the_job_says(self) -> None:
        store = self.make().add_job(submitted(retained=2)).checkpoints
        assert [numbers(store.add(completed(number))) for number in (1, 2, 3, 4)] == [[], [], [1], [2]]
        assert numbers(store.restorable()) == [4, 3]

    def test_a_savepoint_pushes_nothing_out_and_is_restored_from_while_it_is_the_newest(self) -> None:
        store = self.make().add_job(submitted()).checkpoints
        store.add(completed(1))
        assert store.add(completed(2, is_savepoint=True)) == []
        assert numbers(store.restorable()) == [2, 1]
        assert numbers(store.add(completed(3))) == [1]
        assert numbers(store.restorable()) == [3]

    def test_each_job_has_ids_and_checkpoints_of_its_own(self) -> None:
        kept = self.make()
        one, other = kept.add_job(submitted("one")), kept.add_job(submitted("other"))
        one.checkpoints.add(completed(1))
        assert drawn(one.checkpoint_ids) == drawn(other.checkpoint_ids)
        assert list(other.checkpoints.restorable()) == []

    def test_nothing_is_left_of_a_job_that_is_removed(self) -> None:
        kept = self.make()
        job = kept.add_job(submitted())
        drawn(job.checkpoint_ids)
        job.checkpoints.add(completed(1))
        kept.remove_job(JobId("job"), JobStatus.FINISHED)
        again = kept.add_job(submitted())
        assert (drawn(again.checkpoint_ids, 1), list(again.checkpoints.restorable())) == ([1], [])

    def test_removing_twice_and_removing_what_was_never_added_is_harmless(self) -> None:
        kept = self.make()
        kept.add_job(submitted("other")).checkpoints.add(completed(1))
        for _ in range(2):
            kept.remove_job(JobId("job"), JobStatus.FAILED)
        assert numbers(kept.add_job(submitted("other")).checkpoints.restorable()) == [1]

    def test_closing_is_harmless_and_may_be_repeated(self) -> None:
        kept = self.make()
        kept.add_job(submitted())
        kept.close()
        kept.close()
