"""Who needs which file of which checkpoint. Flink: SharedStateRegistryTest."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from understudy.messages import CheckpointId, JobId
from understudy.state.checkpoints.shared_state import (
    CheckpointOf,
    Owner,
    RestoredJob,
    SavepointAt,
    SharedStateRegistry,
    StateFile,
)

JOB = JobId("job")


def checkpoint(number: int) -> CheckpointOf:
    return CheckpointOf(JOB, CheckpointId(number))


def file(name: str) -> StateFile:
    return StateFile("/checkpoints", name)


def test_a_file_of_one_owner_is_free_when_that_one_lets_go() -> None:
    registry = SharedStateRegistry()
    registry.register(checkpoint(1), [file("b"), file("a"), file("b")])
    assert registry.is_needed(file("a"))
    assert registry.release(checkpoint(1)) == (file("b"), file("a"))
    assert not registry.is_needed(file("a"))
    assert registry.release(checkpoint(1)) == ()


def test_incremental_checkpoints_share_files_until_the_last_lets_go() -> None:
    registry = SharedStateRegistry()
    registry.register(checkpoint(1), [file("1.sst")])
    registry.register(checkpoint(2), [file("1.sst"), file("2.sst")])
    registry.register(checkpoint(3), [file("2.sst"), file("3.sst")])
    assert registry.release(checkpoint(1)) == ()
    assert registry.release(checkpoint(3)) == (file("3.sst"),)
    assert registry.release(checkpoint(2)) == (file("1.sst"), file("2.sst"))


def test_a_savepoint_and_its_job_and_a_job_started_from_it_each_keep_it() -> None:
    owners: list[Owner] = [checkpoint(1), SavepointAt("/savepoints/a"), SavepointAt("/b"), RestoredJob(JobId("other"))]
    for last in owners:
        registry = SharedStateRegistry()
        for owner in owners:
            registry.register(owner, [file("_metadata")])
        for owner in owners:
            assert owner is last or registry.release(owner) == ()
        assert registry.release(last) == (file("_metadata"),)


def test_an_owner_may_name_more_files_later() -> None:
    registry = SharedStateRegistry()
    registry.register(checkpoint(1), [file("a")])
    registry.register(checkpoint(1), [file("b")])
    assert registry.release(checkpoint(1)) == (file("a"), file("b"))


def test_an_unknown_owner_needs_nothing() -> None:
    registry = SharedStateRegistry()
    assert not registry.knows(checkpoint(1))
    assert registry.release(checkpoint(1)) == ()


def test_one_owner_without_files_is_known_all_the_same() -> None:
    registry = SharedStateRegistry()
    registry.register(checkpoint(1), [])
    assert registry.knows(checkpoint(1))


def test_what_is_needed_is_told_by_storage() -> None:
    registry = SharedStateRegistry()
    registry.register(checkpoint(1), [file("a"), StateFile("/other", "b")])
    assert registry.needed_below("/checkpoints") == {"a"}
    assert registry.needed_below("/other") == {"b"}


OWNERS = st.integers(1, 4).map(checkpoint) | st.sampled_from([SavepointAt("/x"), RestoredJob(JOB)])
FILES = st.sampled_from([file(name) for name in "abcde"])


class Registry(RuleBasedStateMachine):
    """Beside a model that knows only who has named what."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = SharedStateRegistry()
        self.model: dict[Owner, set[StateFile]] = {}
        self.since_free: Counter[StateFile] = Counter()
        """How often each was handed out since it was last named."""

    @rule(owner=OWNERS, files=st.lists(FILES, max_size=4))
    def register(self, owner: Owner, files: list[StateFile]) -> None:
        self.registry.register(owner, files)
        self.model.setdefault(owner, set()).update(files)
        for each in files:
            self.since_free[each] = 0

    @rule(owner=OWNERS)
    def release(self, owner: Owner) -> None:
        freed = self.registry.release(owner)
        mine = self.model.pop(owner, set())
        others: set[StateFile] = set().union(*self.model.values())
        assert set(freed) == mine - others
        assert len(freed) == len(set(freed))
        self.since_free.update(freed)

    @invariant()
    def a_file_is_handed_out_once_when_nobody_needs_it_and_never_before(self) -> None:
        needed: set[StateFile] = set().union(*self.model.values())
        for each, times in self.since_free.items():
            assert times == (0 if each in needed else 1)
            assert self.registry.is_needed(each) == (each in needed)
        assert self.registry.needed_below("/checkpoints") == {each.path for each in needed}


TestRegistry = Registry.TestCase


@given(st.lists(st.tuples(OWNERS, st.lists(FILES)), max_size=8))
def test_when_all_have_let_go_each_file_was_freed_once(named: list[tuple[Owner, list[StateFile]]]) -> None:
    registry = SharedStateRegistry()
    for owner, files in named:
        registry.register(owner, files)
    freed = [each for owner, _ in named for each in registry.release(owner)]
    assert Counter(freed) == Counter({each for _, files in named for each in files})
