"""KeptJobs: the HighAvailability of one Leadership: records of jobs with the leader's service, bulk in shared storage.

The order that makes it safe: a submission is stored, then its record, then the job starts. A checkpoint's metadata is
stored, then its pointer goes into the record, then it counts. A pointer goes, then the files. A record goes, then the
job's files. So whatever a successor finds in a record is there, and what lies there without a record is left over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...messages import CheckpointId, JobId, JobStatus, LeaderSessionId, SubmitJob
from ...state import CheckpointStorage, CorruptState, MissingState, state_handles
from ...state.checkpoints.checkpoint_ids import FIRST_CHECKPOINT_ID
from ...state.checkpoints.checkpoint_metadata import read_checkpoint
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore
from ...state.checkpoints.high_availability import KeptJob
from ...state.errors import StateError
from .errors import CannotTakeOver, ForgedSubmission
from .job_record import ATTEMPTS_AHEAD, VERSION, CheckpointPointer, JobRecord, read_record
from .leadership import Leadership
from .submissions import StoredProgram, Submissions, decode_name, encode_name

log = logging.getLogger("understudy.job")

IDS_AHEAD = 1_000
"""The number of ids reserved at once; each checkpoint that completes reserves them again."""

OpenStorage = Callable[[str], CheckpointStorage]


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A job of an earlier leader, that is to go on."""

    submitted: SubmitJob
    program: StoredProgram


class KeptRecord:
    """One job's record, as this leader writes it: one change at a time, from any thread."""

    def __init__(self, leadership: Leadership, record: JobRecord) -> None:
        self._leadership = leadership
        self._lock = threading.Lock()
        self.now = record
        self.is_written = False
        self._is_removed = False

    @property
    def place(self) -> str:
        return self._leadership.place(encode_name(self.now.job_id))

    def change(self, to: Callable[[JobRecord], JobRecord]) -> None:
        """Blocks. Raises LostLeadership. Once it was removed nothing brings it back: a write may come late."""
        with self._lock:
            if self._is_removed:
                return
            changed = to(self.now)
            if changed != self.now or not self.is_written:
                self._leadership.write(encode_name(changed.job_id), changed.sealed())
                self.now, self.is_written = changed, True

    def take_away(self) -> None:
        """No successor finds the job any more. Blocks. Raises LostLeadership."""
        with self._lock:
            self._is_removed = True
            self._leadership.remove(encode_name(self.now.job_id))

    # -- CheckpointPointers

    def add(self, completed: CompletedCheckpoint, savepoints: tuple[str, ...] = ()) -> None:
        pointer = CheckpointPointer(
            completed.checkpoint_id, completed.metadata_path, completed.is_savepoint, savepoints
        )
        until = CheckpointId(completed.checkpoint_id + IDS_AHEAD)
        self.change(lambda record: replace(record.with_checkpoint(pointer), ids_until=max(record.ids_until, until)))

    def remove(self, metadata_path: str) -> None:
        self.change(lambda record: record.without_checkpoint(metadata_path))


class ReservedIds:
    """A CheckpointIdCounter that never draws an id that an earlier leader may have drawn. Belongs to one thread.

    It blocks only if a thousand checkpoints in a row were not completed.
    """

    def __init__(self, record: KeptRecord, first_id: CheckpointId) -> None:
        self._record = record
        self._next = first_id

    def get_and_increment(self) -> CheckpointId:
        drawn = self._next
        self._next = CheckpointId(drawn + 1)
        if drawn >= self._record.now.ids_until:
            self._record.change(lambda record: replace(record, ids_until=CheckpointId(drawn + IDS_AHEAD)))
        return drawn

    def set_count(self, next_id: CheckpointId) -> None:
        self._next = max(self._next, next_id)


class ReservedNumbers:
    """AttemptNumbers of one leader, from `first` on. Belongs to one thread.

    It blocks only when a subtask begins its thousandth attempt under this leader, and each thousandth after that.
    """

    def __init__(self, record: KeptRecord, first: int) -> None:
        self._record = record
        self._first = first

    def next_after(self, previous: int) -> int:
        number = max(self._first, previous + 1)
        if number >= self._record.now.attempts_until:
            self._record.change(lambda record: replace(record, attempts_until=number + ATTEMPTS_AHEAD))
        return number


class KeptJobs:
    """Made when the leadership has begun; reads what earlier leaders have kept, and blocks for it. Raises as
    `Leadership.read`.

    A record that cannot be read is left as it is, and said on the logger `understudy.job`; other jobs go on.
    """

    may_block = True

    def __init__(self, leadership: Leadership, submissions: Submissions, open_storage: OpenStorage) -> None:
        self._leadership = leadership
        self._submissions = submissions
        self._open_storage = open_storage
        self._lock = threading.RLock()
        """Reentrant for the simulator's sake, whose threads are one."""
        self._records: dict[JobId, KeptRecord] = {}
        self._open: dict[JobId, KeptJob] = {}
        self._programs: dict[JobId, StoredProgram] = {}
        self._unreadable: dict[JobId, CorruptState] = {}
        for name, data in leadership.read().items():
            try:
                record = _read_named(data, name, leadership.place(name))
            except CorruptState as error:
                log.error("a job that is kept cannot go on, and is left as it is: %s", error)
                self._unreadable[decode_name(name)] = error
                continue
            self._records[record.job_id] = kept = KeptRecord(leadership, record)
            kept.is_written = True

    @property
    def session(self) -> LeaderSessionId:
        return self._leadership.session

    @property
    def is_sure(self) -> bool:
        return self._leadership.is_sure

    def offer(self, job_id: JobId, program: StoredProgram) -> None:
        """The program of a job that is about to be added, to be kept with it."""
        self._programs[job_id] = program

    def kept(self) -> Iterator[TakenOver | CannotTakeOver]:
        """The jobs of earlier leaders, each with what a TaskManager needs to run it, or with why it cannot go on.
        Blocks; raises OSError when storage does not answer.
        """
        for job_id, record in list(self._records.items()):
            if job_id in self._open:
                continue
            try:
                submitted, program = self._submissions.load(job_id)
            except (ForgedSubmission, StateError) as error:
                yield CannotTakeOver(
                    record.now.name,
                    f"job {record.now.name!r} ({job_id}) of an earlier leader cannot go on: {error}. It is left as it "
                    f"is, with checkpoints {_told(record.now)}; to start it again from one of them, submit it "
                    f"again with from_savepoint, under another name or after removing {record.place}",
                )
            else:
                self._programs[job_id] = program
                yield TakenOver(submitted, program)
        for job_id, unreadable in self._unreadable.items():
            try:
                name = self._submissions.load(job_id)[0].graph.name
            except (ForgedSubmission, StateError):  # whose it was, nobody can tell
                continue
            yield CannotTakeOver(
                name,
                f"job {name!r} ({job_id}) of an earlier leader cannot go on: {unreadable}. It is left as it is; its "
                "checkpoints are where they were, and to start it again from one of them, submit it again with "
                f"from_savepoint, under another name or after removing {self._place(job_id)}",
            )

    def remove_leftovers(self) -> None:
        """Submissions that no record leads to: their leader died in between. Blocks; raises OSError."""
        known = {encode_name(job_id) for job_id in (*self._records, *self._unreadable)}
        for name in self._submissions.stored():
            if name not in known:
                log.info("submission %s belongs to no job that is kept, and is removed", name)
                self._submissions.delete_named(name)

    # -- HighAvailability

    def is_kept(self, job_id: JobId) -> bool:
        return job_id in self._records

    def add_job(self, submitted: SubmitJob, first_id: CheckpointId = FIRST_CHECKPOINT_ID) -> KeptJob:
        job_id = submitted.graph.job_id
        with self._lock:
            if job_id in self._open:
                kept = self._open[job_id]
            elif job_id in self._records:
                kept = self._opened(submitted, self._records[job_id])
            else:
                kept = self._made(submitted, first_id)
            self._open[job_id] = kept
        kept.checkpoint_ids.set_count(first_id)
        return kept

    def remove_job(self, job_id: JobId, status: JobStatus) -> None:
        with self._lock:
            if job_id not in self._records:
                return
            self._records[job_id].take_away()
            del self._records[job_id]
            self._open.pop(job_id, None)
            self._programs.pop(job_id, None)
            self._submissions.delete(job_id)

    def close(self) -> None:
        """The leadership is its owner's to give up."""

    # -- inside

    def _place(self, job_id: JobId) -> str:
        return self._leadership.place(encode_name(job_id))

    def _made(self, submitted: SubmitJob, first_id: CheckpointId) -> KeptJob:
        graph = submitted.graph
        self._submissions.store(submitted, self._programs.get(graph.job_id, StoredProgram(b"")))
        record = KeptRecord(
            self._leadership, JobRecord(VERSION, graph.job_id, graph.name, CheckpointId(first_id + IDS_AHEAD))
        )
        record.change(lambda unchanged: unchanged)
        self._records[graph.job_id] = record
        return self._kept_job(submitted, record, first_id)

    def _opened(self, submitted: SubmitJob, record: KeptRecord) -> KeptJob:
        """Of an earlier leader: ids and numbers of attempts go on behind all that it may have drawn."""
        first_id, first_attempt = record.now.ids_until, record.now.attempts_until
        record.change(
            lambda now: replace(
                now, ids_until=CheckpointId(first_id + IDS_AHEAD), attempts_until=first_attempt + ATTEMPTS_AHEAD
            )
        )
        readable = self._readable(submitted, record)
        oldest = min((each.checkpoint_id for each in readable.values() if not each.is_savepoint), default=0)
        checkpoints = [each for each in readable.values() if each.checkpoint_id >= oldest]
        kept = self._kept_job(submitted, record, first_id, first_attempt, checkpoints)
        savepoints = {path: checkpoint for pointer, checkpoint in readable.items() for path in pointer.savepoints}
        _say_from_where(submitted.graph.name, readable)
        return replace(kept, savepoints=savepoints)

    def _kept_job(
        self,
        submitted: SubmitJob,
        record: KeptRecord,
        first_id: CheckpointId,
        first_attempt: int = 0,
        checkpoints: Sequence[CompletedCheckpoint] = (),
    ) -> KeptJob:
        config = submitted.graph.checkpoints
        store = StandaloneCompletedCheckpointStore(config.retained, config.retention, checkpoints)
        numbers = ReservedNumbers(record, first_attempt)
        return KeptJob(ReservedIds(record, first_id), store, record, attempt_numbers=numbers)

    def _readable(self, submitted: SubmitJob, record: KeptRecord) -> dict[CheckpointPointer, CompletedCheckpoint]:
        """Its checkpoints that are whole, oldest first. Raises CorruptState when it has some, and none is."""
        storage = self._open_storage(submitted.graph.checkpoints.directory)
        found: dict[CheckpointPointer, CompletedCheckpoint] = {}
        problems: list[StateError] = []
        for pointer in record.now.checkpoints:
            try:
                found[pointer] = _read(storage, pointer)
            except (CorruptState, MissingState) as error:
                problems.append(error)
                if pointer.is_savepoint and pointer != record.now.checkpoints[-1]:
                    continue  # its user has disposed of it since
                log.warning(
                    "job %r: checkpoint %d cannot be used: %s. If it is the newest, results that were committed since "
                    "the next older one are processed, and may be committed, again",
                    submitted.graph.name,
                    pointer.checkpoint_id,
                    error,
                )
        if problems and not found:
            raise CorruptState(
                record.place,
                f"a checkpoint from which job {submitted.graph.name!r} can go on",
                f"none that can be read: {'; '.join(map(str, problems))}. It would start from the beginning, so it is "
                "not started. Put the files back, and let another JobManager take over",
            )
        return found


def _read_named(data: bytes, name: str, place: str) -> JobRecord:
    """Raises CorruptState, also for the record of another job."""
    record = read_record(data, place)
    if encode_name(record.job_id) != name:
        raise CorruptState(place, f"the record of job {decode_name(name)}", f"that of job {record.job_id}")
    return record


def _read(storage: CheckpointStorage, pointer: CheckpointPointer) -> CompletedCheckpoint:
    checkpoint = read_checkpoint(storage, pointer.path)
    for state in checkpoint.states():
        for handle in state_handles(state):
            storage.check_there(handle)
    return replace(checkpoint, metadata_path=pointer.path)


def _say_from_where(job: str, readable: Mapping[CheckpointPointer, CompletedCheckpoint]) -> None:
    """From where a job that is taken over goes on, or that it ends: whoever had it stopped may have no answer."""
    if not readable:
        log.warning("job %r is taken over before its first checkpoint", job)
        return
    pointer, newest = list(readable.items())[-1]
    if not newest.is_final:
        log.warning("job %r is taken over; its newest checkpoint is %d", job, newest.checkpoint_id)
    elif pointer.savepoints:
        path = pointer.savepoints[-1]
        log.warning(
            "job %r is taken over: it was stopped with savepoint %s, commits what that covers, and ends", job, path
        )
    else:
        log.warning("job %r is taken over after its last checkpoint: it commits what that covers, and ends", job)


def _told(record: JobRecord) -> str:
    return ", ".join(each.path for each in record.checkpoints) or "none"
