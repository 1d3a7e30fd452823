"""HighAvailabilityContract: what every HighAvailability must do; DurableHighAvailabilityContract: and one whose jobs
outlive their JobManager. Subclass it and say how to make one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

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
from understudy.state import CheckpointStorage, CorruptState, checkpoint_directory
from understudy.state.checkpoints.attempt_numbers import NO_ATTEMPT
from understudy.state.checkpoints.checkpoint_ids import CheckpointIdCounter
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.checkpoints.high_availability import HighAvailability, KeptJob
from understudy.state.errors import LostLeadership


def submitted(name: str = "job", retained: int = 1) -> SubmitJob:
    checkpoints = CheckpointConfig("", retained=retained, retention=CheckpointRetention.NEVER)
    restart = RestartStrategyConfig(RestartStrategyKind.NONE)
    return SubmitJob(JobGraph(JobId(name), name, (), (), checkpoints, restart), 1, 1)


def completed(number: int, *, is_savepoint: bool = False) -> CompletedCheckpoint:
    return CompletedCheckpoint(JobId("job"), CheckpointId(number), 1, 2, 0, {}, is_savepoint)


def drawn(ids: CheckpointIdCounter, count: int = 3) -> list[CheckpointId]:
    return [ids.get_and_increment() for _ in range(count)]


def begun(job: KeptJob, count: int = 3) -> list[int]:
    """Numbers of the attempts of one subtask."""
    found: list[int] = []
    for _ in range(count):
        found.append(job.attempt_numbers.next_after(found[-1] if found else NO_ATTEMPT))
    return found


def given_until_refused(job: KeptJob) -> Iterator[int]:
    number = NO_ATTEMPT
    with suppress(LostLeadership):
        while number < 10_000:
            number = job.attempt_numbers.next_after(number)
            yield number


def drawn_until_refused(ids: CheckpointIdCounter) -> Iterator[CheckpointId]:
    number = CheckpointId(0)
    with suppress(LostLeadership):
        while number < 10_000:
            number = ids.get_and_increment()
            yield number


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

    def test_attempts_of_the_first_leader_are_counted_from_0(self) -> None:
        assert begun(self.make().add_job(submitted())) == [0, 1, 2]

    def test_an_attempt_that_was_adopted_is_followed_by_the_next_number(self) -> None:
        assert self.make().add_job(submitted()).attempt_numbers.next_after(5_000) == 5_001

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


def stored(storage: CheckpointStorage, number: int, *, is_savepoint: bool = False) -> CompletedCheckpoint:
    """The same, with its metadata written."""
    draft = completed(number, is_savepoint=is_savepoint)
    path = f"{checkpoint_directory(draft.job_id, draft.checkpoint_id)}/_metadata"
    storage.write_sealed(path, encode_metadata(draft))
    return replace(draft, metadata_path=path)


class DurableHighAvailabilityContract(HighAvailabilityContract):
    """For one whose jobs outlive their JobManager. `make`: of a cluster that nobody else uses."""

    @property
    @abstractmethod
    def storage(self) -> CheckpointStorage:
        """Of the jobs' checkpoints."""

    @abstractmethod
    def succeed(self, leader: HighAvailability) -> HighAvailability:
        """That of the next session, whose predecessor does not know that it is over."""

    def submitted(self, name: str = "job", retained: int = 1) -> SubmitJob:
        wanted = submitted(name, retained)
        return replace(wanted, graph=replace(wanted.graph, checkpoints=self._config(retained)))

    def _config(self, retained: int) -> CheckpointConfig:
        return CheckpointConfig(self.storage.url, retained=retained, retention=CheckpointRetention.NEVER)

    def _complete(self, job: KeptJob, number: int, *, is_savepoint: bool = False) -> CompletedCheckpoint:
        """As a JobManager does it."""
        checkpoint = stored(self.storage, number, is_savepoint=is_savepoint)
        job.pointers.add(checkpoint)
        for dropped in job.checkpoints.add(checkpoint):
            job.pointers.remove(dropped.metadata_path)
            self.storage.delete(dropped.metadata_path)
        return checkpoint

    def test_a_successor_has_the_newest_checkpoints_and_draws_no_id_again(self) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted(retained=2))
        ids = [drawn(job.checkpoint_ids, 1)[0] for _ in range(3)]
        checkpoints = [self._complete(job, number) for number in ids]
        drawn_in_vain = drawn(job.checkpoint_ids, 5)
        successor = self.succeed(leader)
        assert successor.is_kept(JobId("job"))
        again = successor.add_job(self.submitted(retained=2))
        assert list(again.checkpoints.restorable()) == checkpoints[:0:-1]
        assert min(drawn(again.checkpoint_ids)) > max(drawn_in_vain)

    def test_a_savepoint_that_completes_late_gives_no_reserved_id_back(self) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted(retained=2))
        (old,) = drawn(job.checkpoint_ids, 1)
        job.checkpoint_ids.set_count(CheckpointId(5_000))
        (newest,) = drawn(job.checkpoint_ids, 1)
        self._complete(job, newest)
        self._complete(job, old, is_savepoint=True)
        again = self.succeed(leader).add_job(self.submitted(retained=2))
        assert min(drawn(again.checkpoint_ids)) > newest

    def test_ids_increase_over_many_leaders(self) -> None:
        leader, ids = self.make(), []
        for _ in range(4):
            ids += drawn(leader.add_job(self.submitted()).checkpoint_ids)
            leader = self.succeed(leader)
        assert ids == sorted(set(ids))

    def test_a_leader_that_is_deposed_draws_no_id_that_its_successor_draws(self) -> None:
        """It goes on with checkpoints that do not complete until it would have to reserve more ids."""
        leader = self.make()
        job = leader.add_job(self.submitted())
        successor = self.succeed(leader).add_job(self.submitted())
        given = list(drawn_until_refused(job.checkpoint_ids))
        assert 0 < len(given) < 10_000
        assert min(drawn(successor.checkpoint_ids)) > max(given)

    def test_attempt_numbers_increase_over_many_leaders_however_many_attempts_each_begins(self) -> None:
        """Two subtasks: one restarts alone, and more often than numbers are reserved at once."""
        leader, highest = self.make(), NO_ATTEMPT
        for count in (2, 2_500, 1, 3):
            job = leader.add_job(self.submitted())
            given = [*begun(job), *begun(job, count)]
            assert min(given) > highest
            highest = max(given)
            leader = self.succeed(leader)

    def test_a_leader_that_is_deposed_gives_no_number_that_its_successor_gives(self) -> None:
        """It goes on restarting the job until it would have to reserve more."""
        leader = self.make()
        job = leader.add_job(self.submitted())
        successor = self.succeed(leader).add_job(self.submitted())
        given = list(given_until_refused(job))
        assert 0 < len(given) < 10_000
        assert min(begun(successor)) > max(given)

    def test_attempts_that_were_adopted_are_followed_by_numbers_of_the_new_leader(self) -> None:
        leader = self.make()
        (adopted,) = begun(leader.add_job(self.submitted()), 1)
        job = self.succeed(leader).add_job(self.submitted())
        assert job.attempt_numbers.next_after(adopted) == begun(job)[0] > adopted + 1

    def test_a_savepoint_that_is_the_newest_is_what_a_successor_goes_on_from(self) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted())
        self._complete(job, 1)
        self._complete(job, 2, is_savepoint=True)
        again = self.succeed(leader).add_job(self.submitted())
        assert numbers(again.checkpoints.restorable()) == [2, 1]

    def test_a_checkpoint_that_lost_its_pointer_is_not_looked_for(self) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted(retained=3))
        self._complete(job, 1)
        given_up = stored(self.storage, 2)
        job.pointers.add(given_up)
        job.pointers.remove(given_up.metadata_path)
        assert numbers(self.succeed(leader).add_job(self.submitted(retained=3)).checkpoints.restorable()) == [1]

    def test_a_checkpoint_that_its_leader_had_no_time_to_give_up_goes_with_the_next_one(self) -> None:
        """Else its files, and its pointer, would stay as long as the job."""
        leader = self.make()
        job = leader.add_job(self.submitted())
        superfluous, newest = self._complete(job, 1), stored(self.storage, 2)
        job.pointers.add(newest)
        successor = self.succeed(leader)
        again = successor.add_job(self.submitted())
        assert next(again.checkpoints.restorable()) == newest
        last = self._complete(again, 3)
        assert not self.storage.exists(superfluous.metadata_path)
        assert not self.storage.exists(newest.metadata_path)
        assert list(self.succeed(successor).add_job(self.submitted()).checkpoints.restorable()) == [last]

    def test_a_job_that_was_removed_is_not_kept_by_a_successor(self) -> None:
        leader = self.make()
        leader.add_job(self.submitted())
        leader.add_job(self.submitted("other"))
        leader.remove_job(JobId("job"), JobStatus.FINISHED)
        successor = self.succeed(leader)
        assert (successor.is_kept(JobId("job")), successor.is_kept(JobId("other"))) == (False, True)

    def test_a_late_write_does_not_bring_a_removed_job_back(self) -> None:
        """As of a checkpoint that was pushed out by the last one."""
        leader = self.make()
        job = leader.add_job(self.submitted(retained=2))
        first, last = self._complete(job, 1), self._complete(job, 2)
        leader.remove_job(JobId("job"), JobStatus.FINISHED)
        job.pointers.remove(first.metadata_path)
        job.pointers.add(last)
        assert not self.succeed(leader).is_kept(JobId("job"))

    def test_whatever_a_deposed_leader_writes_is_refused_and_no_successor_sees_it(self) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted())
        kept = self._complete(job, 1)
        successor = self.succeed(leader)
        late = stored(self.storage, 2)
        for act in (
            lambda: job.pointers.add(late),
            lambda: job.pointers.remove(kept.metadata_path),
            lambda: leader.remove_job(JobId("job"), JobStatus.CANCELED),
            lambda: leader.add_job(self.submitted("late")),
        ):
            with pytest.raises(LostLeadership):
                act()
        last = self.succeed(successor)
        assert not last.is_kept(JobId("late"))
        assert numbers(last.add_job(self.submitted()).checkpoints.restorable()) == [1]

    @pytest.mark.parametrize("damage", ["gone", "changed"])
    def test_a_successor_goes_on_from_the_next_older_checkpoint_if_the_newest_is_damaged(self, damage: str) -> None:
        leader = self.make()
        job = leader.add_job(self.submitted(retained=2))
        self._complete(job, 1)
        self._damage(self._complete(job, 2), damage)
        assert numbers(self.succeed(leader).add_job(self.submitted(retained=2)).checkpoints.restorable()) == [1]

    @pytest.mark.parametrize("damage", ["gone", "changed"])
    def test_with_all_its_checkpoints_damaged_a_job_is_not_started_from_the_beginning(self, damage: str) -> None:
        leader = self.make()
        self._damage(self._complete(leader.add_job(self.submitted()), 1), damage)
        successor = self.succeed(leader)
        for _ in range(2):
            with pytest.raises(CorruptState, match="It would start from the beginning, so it is not started"):
                successor.add_job(self.submitted())
        assert self.succeed(successor).is_kept(JobId("job"))

    def _damage(self, checkpoint: CompletedCheckpoint, how: str) -> None:
        if how == "gone":
            self.storage.delete(checkpoint.metadata_path)
        else:
            self.storage.write(checkpoint.metadata_path, b"half a file")
