"""UploadedFiles: a snapshot names only files that are there for as long as it counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import CheckpointId, SharedFileId, SharedStateHandle, StateHandle
from understudy.state.backends.shared_files import UploadedFiles

from ...examples import examples


def at(path: str, name: str) -> SharedStateHandle:
    return SharedStateHandle(SharedFileId(name), StateHandle(path, None, 1, 1))


class Job:
    """One subtask's files, and a coordinator that keeps the newest completed checkpoint and what was acknowledged."""

    def __init__(self) -> None:
        self.uploaded = UploadedFiles()
        self.live: set[str] = set()
        self.pending: dict[int, set[SharedStateHandle]] = {}
        self.newest: tuple[int, set[SharedStateHandle]] = (0, set())
        self.stored: set[str] = set()
        self.number = 0

    def take(self) -> None:
        self.number += 1
        names = sorted(map(SharedFileId, self.live))
        known = self.uploaded.begin(CheckpointId(self.number), names)
        handles = {known.get(name) or at(f"{self.number}-{name}", name) for name in names}
        self.stored |= {str(handle.handle.path) for handle in handles} - {str(it.handle.path) for it in known.values()}
        self.uploaded.written(CheckpointId(self.number), handles)
        self.pending[self.number] = handles

    def complete(self, number: int) -> None:
        """It subsumes all older ones; their files go unless it has them. Others have not been acknowledged yet."""
        handles = self.pending.pop(number)
        assert {str(handle.handle.path) for handle in handles} <= self.stored, "names a file that is gone"
        older = set().union(*(self.pending.pop(each) for each in [each for each in self.pending if each < number]))
        self.stored -= {str(handle.handle.path) for handle in (older | self.newest[1]) - handles}
        self.newest = number, handles
        self.uploaded.complete(CheckpointId(number))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take")),
        st.tuples(st.just("file"), st.integers(0, 9)),
        st.tuples(st.just("merge"), st.integers(0, 9)),
        st.tuples(st.just("complete"), st.integers(0, 3)),
        st.tuples(st.just("abort"), st.integers(0, 3)),
    ),
    max_size=40,
)


@examples(500)
@given(steps=STEPS)
def test_no_completed_checkpoint_names_a_file_that_has_been_deleted(steps: list[tuple[str, int]]) -> None:
    job, gone = Job(), set[str]()
    for what, *number in steps:
        match what:
            case "take":
                job.take()
            case "file":
                if f"{number[0]}" not in gone:
                    job.live.add(f"{number[0]}")
            case "merge":
                gone |= job.live & {f"{number[0]}"}
                job.live.discard(f"{number[0]}")
            case _ if len(job.pending) > number[0]:
                checkpoint = sorted(job.pending)[number[0]]
                if what == "complete":
                    job.complete(checkpoint)
                else:  # its own files go; that is not what is looked at here
                    del job.pending[checkpoint]


def test_files_of_a_completed_checkpoint_are_named_again() -> None:
    job = Job()
    job.live = {"a", "b"}
    job.take()
    job.complete(1)
    job.live = {"b", "c"}
    job.take()
    assert job.pending[2] == {at("1-b", "b"), at("2-c", "c")}


def test_a_file_that_an_older_pending_checkpoint_stores_anew_is_stored_anew() -> None:
    """Of seed 106 of the simulator: 2 was taken before 1 was complete, and completes after 3 was taken."""
    job = Job()
    job.live = {"a"}
    job.take()
    job.take()
    job.complete(1)
    job.take()
    assert job.pending[3] == {at("3-a", "a")}
    job.complete(2)
    job.take()
    assert job.pending[4] == {at("4-a", "a")}
    job.complete(3)
    job.take()
    assert job.pending[5] == {at("5-a", "a")}


def test_a_whole_one_stores_all_anew_and_later_ones_build_on_it() -> None:
    uploaded = UploadedFiles()
    files = [SharedFileId("a")]
    uploaded.restored([at("1-a", "a")])
    assert uploaded.begin(CheckpointId(2), files, whole=True) == {}
    uploaded.written(CheckpointId(2), [at("2-a", "a")])
    assert uploaded.begin(CheckpointId(3), files) == {}, "2, which is pending, does not name the file of 1"
    uploaded.written(CheckpointId(3), [at("3-a", "a")])
    uploaded.complete(CheckpointId(2))
    uploaded.complete(CheckpointId(3))
    assert uploaded.begin(CheckpointId(4), files) == {"a": at("3-a", "a")}


def test_completion_of_a_snapshot_of_an_earlier_attempt_changes_nothing() -> None:
    uploaded = UploadedFiles()
    uploaded.restored([at("1-a", "a")])
    uploaded.complete(CheckpointId(7))
    assert uploaded.begin(CheckpointId(8), [SharedFileId("a")]) == {"a": at("1-a", "a")}


def test_a_file_that_a_pending_checkpoint_has_stored_elsewhere_is_not_named_again() -> None:
    """Files that another job has stored: each checkpoint stores them anew until one of its own is complete."""
    uploaded = UploadedFiles()
    foreign = at("other/a", "a")
    uploaded.restored([foreign])
    for number in (1, 2):
        assert uploaded.begin(CheckpointId(number), [SharedFileId("a")]) == {"a": foreign}
        uploaded.written(CheckpointId(number), [at(f"{number}-a", "a")])
    uploaded.complete(CheckpointId(1))
    assert uploaded.begin(CheckpointId(3), [SharedFileId("a")]) == {}, "the second, once complete, takes 1-a along"
