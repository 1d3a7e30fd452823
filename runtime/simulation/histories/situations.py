"""Situations: what a history has come to, beyond what was to happen in it. Read from its trace when it is over.

A simulator finds no bug where its histories never are. Each situation here is one in which bugs were missed; see
`mix.py` for how histories are led there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import get_args

from ....messages import (
    NO_EDGE,
    AcknowledgeCheckpoint,
    AcknowledgeTogether,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    ExecutionAttemptId,
    FailureCause,
    JobId,
    JobStatus,
    JobStatusChanged,
    NotifyEndOfData,
    OperatorId,
    OperatorSubtaskState,
    SubmitTask,
    TaskDeployment,
    TaskManagerChanged,
    UpdateTaskExecutionState,
    VertexId,
)
from ....state import key_group_range, state_handles
from ..world.faults import SyncedFolder
from ..world.frame_text import FrameText
from ..world.power import FAILS, synced_folder
from ..world.probes import Moment
from ..world.trace import Trace
from .actions import DisposeSavepoint, RestartFromDrained, RestartFromSavepoint, StopWithSavepoint, TakeSavepoint

IN_FLIGHT = "records in flight are restored"
SEVERAL_IN_FLIGHT = "several batches in flight on one channel are restored"
ENDED_IN_PART = "a checkpoint is restored with data ended in some subtasks only"
ENDED_AGAIN = "and another checkpoint is complete after that"
ENDED_RESCALED = "such a savepoint is restored in another parallelism"
UNEVEN_KEYS = "key groups of a subtask come from several"
UNEVEN_LISTS = "list items are dealt out with a remainder"
SEVERAL_RESCALES = "several rescales in a row"
BOUNDARIES = "there is state at all boundaries of key groups"
INLINE_BESIDE_FILES = "inline state is restored beside files"
ROTTEN = "a file that is cut off is read back"
FLIPPED = "a file with a wrong bit is read back"
LIVES_ON = "a TaskManager that was given up goes on running"
ZOMBIE_WRITES = "and changes files"
ZOMBIE_ACKNOWLEDGES = "and its acknowledgement comes"
CLOSED_WAITING = "a channel is closed with something waiting"
OLDER_SAVEPOINT = "a savepoint is complete after newer checkpoints"
CROSSED = "the older of two savepoints is complete last"
STORED_ANYWAY = "metadata is stored of a checkpoint that a restart has given up"
DISPOSED = "a job goes back to a savepoint that is disposed of"
OWN_ROTTEN = "a job that was started from a savepoint cannot read its own checkpoint"
BEHIND_THE_DATA = "tasks fail between the end of all data and the final checkpoint"
DRAINED = "a job is drained"
DRAINED_RESCALED = "such a savepoint is restored in another parallelism, or the same"
UNSEALED = "the power fails when metadata is written"
TIME_RESTORED = "watermarks are restored"
TIME_RESCALED = "and are those of the slowest subtask"
TIME_IN_FLIGHT = "watermarks are restored with records in flight"
BETWEEN_TIMERS = "a barrier passes while timers fire"
FELL_SILENT = "nobody waits for a source that has fallen silent"
POWER = "the power fails after the sync of a folder: "

SITUATIONS = (
    IN_FLIGHT,
    SEVERAL_IN_FLIGHT,
    ENDED_IN_PART,
    ENDED_AGAIN,
    ENDED_RESCALED,
    UNEVEN_KEYS,
    UNEVEN_LISTS,
    SEVERAL_RESCALES,
    BOUNDARIES,
    INLINE_BESIDE_FILES,
    ROTTEN,
    FLIPPED,
    LIVES_ON,
    ZOMBIE_WRITES,
    ZOMBIE_ACKNOWLEDGES,
    CLOSED_WAITING,
    OLDER_SAVEPOINT,
    CROSSED,
    STORED_ANYWAY,
    DISPOSED,
    OWN_ROTTEN,
    BEHIND_THE_DATA,
    DRAINED,
    DRAINED_RESCALED,
    UNSEALED,
    TIME_RESTORED,
    TIME_RESCALED,
    TIME_IN_FLIGHT,
    BETWEEN_TIMERS,
    FELL_SILENT,
    *(f"{POWER}{folder}" for folder in get_args(SyncedFolder)),
)
"""All, in the order in which a table shows them."""

_MOMENTS: dict[Moment, str] = {
    "closed waiting": CLOSED_WAITING,
    "between timers": BETWEEN_TIMERS,
    "idle": FELL_SILENT,
}

_ORIGIN = re.compile(r"savepoint-(job-\d+)-")
_METADATA = re.compile(r"/(job-\d+)/chk-(\d+)/_metadata$")


def situations(trace: Trace, moments: Collection[Moment] = ()) -> frozenset[str]:
    """Those that this history has reached. `moments`: what its probes have seen beside."""
    seen = _Seen({*_plain(trace), *(_MOMENTS[each] for each in moments)})
    for _, who, what, details in trace.entries:
        match what, details:
            case "received", (FrameText() as frame,):
                seen.message(who, frame.message())
            case (("write" | "rename" | "remove"), _) if who in seen.lost:
                seen.found.add(ZOMBIE_WRITES)
            case _, (TaskManagerChanged(registered=False, task_manager_id=lost),):
                seen.lost.add(lost)
            case _, (CheckpointCompleted() as event,):
                seen.completed(event)
            case "asks", (RestartFromSavepoint() | RestartFromDrained(), str(path)) if origin := _ORIGIN.search(path):
                seen.origins.append(JobId(origin[1]))
            case "answered", (DisposeSavepoint(), _):
                seen.has_disposed = True
            case "rename", (_, str(path)) if metadata := _METADATA.search(path):
                seen.stored(JobId(metadata[1]), CheckpointId(int(metadata[2])))
            case _, (CheckpointAborted() | JobStatusChanged() as event,):
                seen.troubled(event)
        if who in seen.lost and what in ("received", "goes on", "write", "rename", "remove"):
            seen.found.add(LIVES_ON)
    return frozenset(seen.found | seen.restored())


def _plain(trace: Trace) -> Iterator[str]:
    """What one entry says by itself; of savepoints, what the order of their answers says."""
    latest_ms = 0.0
    for _, _, what, details in trace.entries:
        match what, details:
            case str(said), (str(path),) if said == FAILS:
                yield UNSEALED if _METADATA.search(path) else f"{POWER}{synced_folder(path)}"
            case "answered", (StopWithSavepoint(drain=True), _):
                yield DRAINED
            case "asks", (RestartFromDrained(), _):
                yield DRAINED_RESCALED
            case "answered", (TakeSavepoint(at_ms=at_ms), _):
                if at_ms < latest_ms:
                    yield CROSSED
                latest_ms = max(at_ms, latest_ms)


@dataclass(slots=True)
class _Job:
    """What was seen of one job."""

    deployed: dict[CheckpointId, list[TaskDeployment]] = field(default_factory=lambda: defaultdict(list))
    """By the checkpoint that is restored, all attempts."""
    ended: dict[CheckpointId, dict[VertexId, set[bool]]] = field(default_factory=lambda: defaultdict(dict))
    """By checkpoint and vertex: whether the data of its subtasks had ended when they acknowledged."""
    parallelism: int = 1
    newest: CheckpointId | None = None
    is_ended_in_part: bool = False
    """Whether it has restored such a checkpoint."""
    subtasks: set[tuple[VertexId, int]] = field(default_factory=set)
    """All."""
    ended_now: set[tuple[VertexId, int]] = field(default_factory=set)
    """Those whose data has ended, since the last restart."""
    is_final: bool = False
    given_up: set[CheckpointId] = field(default_factory=set)
    """By a restart."""
    has_origin: bool = False


@dataclass(slots=True)
class _Seen:
    found: set[str]
    lost: set[str] = field(default_factory=set)
    has_disposed: bool = False
    """Of a savepoint."""
    origins: list[JobId] = field(default_factory=list)
    """Of the jobs that were started from savepoints, in their order."""
    _attempts: dict[ExecutionAttemptId, tuple[str, TaskDeployment]] = field(default_factory=dict)
    """Where each runs, and as what."""
    _jobs: dict[JobId, _Job] = field(default_factory=lambda: defaultdict(_Job))

    def message(self, who: str, message: object) -> None:
        match message:
            case SubmitTask(deployment=deployment):
                self._attempts[deployment.attempt_id] = who, deployment
                self._submitted(self._jobs[deployment.job_id], deployment)
            case UpdateTaskExecutionState(attempt_id=attempt_id, failure=FailureCause() as failure):
                self.found |= (rotten := _rotten(failure))
                if rotten and attempt_id in self._attempts:
                    self._cannot_read(self._attempts[attempt_id][1])
            case NotifyEndOfData(attempt_id=attempt_id) if attempt_id in self._attempts:
                deployment = self._attempts[attempt_id][1]
                self._jobs[deployment.job_id].ended_now.add((deployment.vertex_id, deployment.subtask_index))
            case AcknowledgeCheckpoint(attempt_id=attempt_id) if attempt_id in self._attempts:
                self._acknowledged(message, *self._attempts[attempt_id])
            case AcknowledgeTogether(acknowledgements):
                for each in acknowledgements:
                    self.message(who, each)

    def _cannot_read(self, deployment: TaskDeployment) -> None:
        """The state that it is to restore is unreadable."""
        if self._jobs[deployment.job_id].has_origin and not deployment.restored_root:
            self.found.add(OWN_ROTTEN)

    def _submitted(self, job: _Job, deployment: TaskDeployment) -> None:
        job.parallelism = max(job.parallelism, deployment.parallelism)
        job.subtasks.add((deployment.vertex_id, deployment.subtask_index))
        if deployment.restored_root:
            job.has_origin = True
            self.found |= {DISPOSED} if self.has_disposed else set()
        if deployment.restored_checkpoint_id is not None:
            others = job.deployed[deployment.restored_checkpoint_id]
            others.append(deployment)
            job.is_ended_in_part = job.is_ended_in_part or _is_ended_in_part(others)

    def _acknowledged(self, message: AcknowledgeCheckpoint, where: str, deployment: TaskDeployment) -> None:
        if where in self.lost:
            self.found.add(ZOMBIE_ACKNOWLEDGES)
        ended = self._jobs[message.job_id].ended[message.checkpoint_id]
        had_ended = message.state is not None and message.state.data_ended
        ended.setdefault(deployment.vertex_id, set()).add(had_ended)

    def stored(self, job_id: JobId, checkpoint_id: CheckpointId) -> None:
        """Its metadata file is there."""
        if checkpoint_id in self._jobs[job_id].given_up:
            self.found.add(STORED_ANYWAY)

    def troubled(self, event: CheckpointAborted | JobStatusChanged) -> None:
        job = self._jobs[event.job_id]
        if isinstance(event, CheckpointAborted):
            if event.reason.startswith("region_restarting"):
                job.given_up.add(event.checkpoint_id)
        elif event.status is JobStatus.RESTARTING:
            if job.subtasks and job.ended_now >= job.subtasks and not job.is_final:
                self.found.add(BEHIND_THE_DATA)
            job.ended_now.clear()

    def completed(self, event: CheckpointCompleted) -> None:
        job = self._jobs[event.job_id]
        job.is_final = job.is_final or event.final
        if job.newest is not None and event.checkpoint_id < job.newest:
            self.found.add(OLDER_SAVEPOINT)
        job.newest = max(event.checkpoint_id, job.newest or event.checkpoint_id)
        if job.is_ended_in_part:
            self.found.add(ENDED_AGAIN)

    def restored(self) -> set[str]:
        """What the deployments say, once all are known."""
        found: set[str] = set()
        starts = [job_id for job_id, job in self._jobs.items() if any(map(_is_from_savepoint, job.deployed.values()))]
        origins = dict(zip(starts, self.origins, strict=False))
        rescales = 0
        for job_id, job in self._jobs.items():
            for checkpoint_id, deployments in job.deployed.items():
                found |= set(_of_one_restore(deployments))
                origin = self._jobs.get(origins.get(job_id, job_id), job)
                if _is_from_savepoint(deployments) and origin.parallelism != job.parallelism:
                    rescales += 1
                    found |= set(_of_one_rescale(deployments))
                    if any(len(ended) > 1 for ended in origin.ended[checkpoint_id].values()):
                        found.add(ENDED_RESCALED)
        return found | ({SEVERAL_RESCALES} if rescales > 1 else set())


def _of_one_restore(deployments: list[TaskDeployment]) -> Iterator[str]:
    states = [state for deployment in deployments for state in deployment.restored]
    batches = [len(channel.offsets) - 1 for state in states for channel in state.channels]
    if any(batches):
        yield IN_FLIGHT
    if any(several > 1 for several in batches):
        yield SEVERAL_IN_FLIGHT
    times = [each for state in states for each in state.watermarks]
    if times:
        yield TIME_RESTORED
        if any(batches):
            yield TIME_IN_FLIGHT
    if any(each.edge == NO_EDGE for each in times):
        yield TIME_RESCALED
    handles = [handle for state in states for handle in state_handles(state)]
    if len({handle.path is None for handle in handles}) > 1:
        yield INLINE_BESIDE_FILES
    if _is_ended_in_part(deployments):
        yield ENDED_IN_PART


def _of_one_rescale(deployments: list[TaskDeployment]) -> Iterator[str]:
    items: Counter[tuple[OperatorId, str, int]] = Counter()
    keyed = [each for each in deployments if any(operator.keyed for _, operator in _operators(each))]
    if keyed and all(map(_has_state_at_its_boundaries, keyed)):
        yield BOUNDARIES
    once = {(each.vertex_id, each.subtask_index): each for each in deployments}
    for deployment in once.values():
        for operator_id, operator in _operators(deployment):
            if deployment.parallelism > 1 and len({each.first_key_group for each in operator.keyed}) > 1:
                yield UNEVEN_KEYS
            for each in operator.lists:
                if each.mode == "split":
                    items[operator_id, each.name, deployment.parallelism] += len(each.offsets) - 1
    if any(count > parallelism and count % parallelism for (_, _, parallelism), count in items.items()):
        yield UNEVEN_LISTS


def _has_state_at_its_boundaries(deployment: TaskDeployment) -> bool:
    own = key_group_range(deployment.max_parallelism, deployment.parallelism, deployment.subtask_index).groups
    groups = {group for _, operator in _operators(deployment) for each in operator.keyed for group in each.offsets}
    return {own[0], own[-1]} <= groups


def _operators(deployment: TaskDeployment) -> Iterator[tuple[OperatorId, OperatorSubtaskState]]:
    for state in deployment.restored:
        yield from state.operators.items()


def _is_from_savepoint(deployments: list[TaskDeployment]) -> bool:
    return bool(deployments) and bool(deployments[0].restored_root)


def _is_ended_in_part(deployments: list[TaskDeployment]) -> bool:
    """Whether the data of some subtasks of a vertex has ended, and that of others has not."""
    ended: dict[VertexId, set[bool]] = defaultdict(set)
    for each in deployments:
        ended[each.vertex_id].add(any(state.data_ended for state in each.restored))
    return any(len(both) > 1 for both in ended.values())


def _rotten(failure: FailureCause) -> set[str]:
    step: FailureCause | None = failure
    while step is not None:
        if step.error_type == "CorruptState":
            return {FLIPPED if "CRC-32" in step.error_message else ROTTEN}
        step = step.cause
    return set()
