"""HostedAttempt: one attempt of a harness: what a task has inside, and does, without its channels and messages.

Open when it is made. It runs until it is over: closed, crashed, or failed by what user code raised. It checks nothing
that its harness has checked.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from tempfile import mkdtemp
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from ....actors.async_calls.async_calls import AsyncCalls
from ....actors.async_calls.settings import AsyncSettings
from ....actors.flow.elements import END_OF_TIME, NO_WATERMARK, AnyBatch, Batch, Watermark, WatermarkStatus
from ....actors.operators.operator import Operator
from ....actors.operators.source import END, Source, SourceState, continue_source, offset_of
from ....actors.operators.source_reader import SourceReader
from ....actors.tasks.operator_chain import OperatorChain
from ....actors.tasks.operator_hooks import blame
from ....actors.tasks.task_setup import by_id, place
from ....actors.tasks.task_state import StateServices, TaskState
from ....actors.tasks.task_watermarks import TaskWatermarks
from ....actors.tasks.watched_collector import watched_collector
from ....messages import CheckpointId, ExecutionAttemptId, JobId, SlotIndex, SubtaskIndex, SubtaskState, TaskDeployment
from ....messages.counted import counted
from ....state import CheckpointStorage, backend_named, key_group_range
from ....state.backends.shared_backend import SharedBackend
from .harness_clock import EPOCH_MS, HarnessClock
from .harness_snapshot import HarnessMisused, HarnessSnapshot, files_of, share_of_state
from .hosted_chain import VERTEX, HostedChain
from .hosted_coroutines import HostedCoroutines

_PROCESS = uuid4().hex[:8]
_attempts = (f"attempt-{_PROCESS}-{number}" for number in count())
"""Unique in the world, as those of a job are: what an attempt leaves in a real system may outlive the process."""
_MOST_WAITS = 10_000
"""So often time passes at the end of the data without a record that leaves."""


class _Input(NamedTuple):
    """An input of the attempt, as one channel."""

    edge: int
    producer_subtask: SubtaskIndex
    input_index: int


@dataclass(slots=True)
class HostedJob:
    """State shared by the attempts that are restored from one another."""

    job_id: JobId
    chain: HostedChain
    max_parallelism: int
    state_backend: str
    resources: dict[str, Any]
    last_attempt: int = -1
    last_checkpoint: int = 0
    newest_completed: int = 0
    """Checkpoints that were said to be complete, or restored."""
    now_ms: float = 0.0
    knows_of_event_time: bool = False
    """Whether a warning has said which timers do not fire by the clock."""


class HostedAttempt:
    """Owned by its harness."""

    def __init__(
        self,
        job: HostedJob,
        snapshots: Sequence[HarnessSnapshot],
        parallelism: int,
        subtask_index: int,
        *,
        is_start: bool = False,
    ) -> None:
        """Restore and open; raises what user code and the state raise, and is over then. `is_start`: the job starts
        here, so the snapshots are another one's.
        """
        self.over = ""
        """How it ended; empty while it runs."""
        self.deployment = replace(
            _deployment(job, snapshots, parallelism, subtask_index),
            is_failover=not is_start and _is_failover(job, snapshots, parallelism),
        )
        self.clock = HarnessClock(max([job.now_ms, *(each.clock_ms for each in snapshots)]))
        job.now_ms, job.last_attempt = self.clock.now_ms(), self.deployment.attempt_number
        job.last_checkpoint = max([job.last_checkpoint, *(each.checkpoint_id for each in snapshots)])
        job.newest_completed = max([job.newest_completed, *(each.checkpoint_id for each in snapshots)])
        self.last_checkpoint = job.last_checkpoint
        self.emitted: list[AnyBatch] = []
        self.sides: dict[str, list[AnyBatch]] = {}
        """By name of the tag, what went to side outputs."""
        self.watermarks_out: list[int] = []
        self.woken = False
        self._job, self._polled = job, 0
        operators = job.chain.operators()
        place(operators, self.deployment, clock=self.clock, wake=self._wake, resources=job.resources)
        folder = mkdtemp(prefix="understudy-harness-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        """Called when this object goes, too: where nobody has closed it, or its begin failed."""
        self._storage = CheckpointStorage(folder)
        self._coroutines = HostedCoroutines(self.clock)
        services = StateServices(
            self._storage, backend_named(job.state_backend), inline_threshold_bytes=1, call_loop=self._coroutines
        )
        self.state = TaskState(self.deployment, by_id(operators), services)
        self.state.give_calls(self._calls_of)
        self.chain = OperatorChain(operators, self._emit, self._say, watched_collector)
        self._inputs = [_Input(index, SubtaskIndex(0), index) for index in range(max(job.chain.inputs, 1))]
        self._watermarks = TaskWatermarks(len(self._inputs))
        self.source = operators[0] if isinstance(operators[0], Source) else None
        self._reader = None if self.source is None else SourceReader(self.source, operators[1:])
        self.ended = self.state.data_ended
        with self._deadly():
            self._open(snapshots)

    def receive(self, watermark_ms: int, input_index: int) -> None:
        """A watermark on one input: all fires that is due when all inputs are as far."""
        if self._watermarks.receive(input_index, watermark_ms):
            self._fire()

    def advance(self, to_ms: float) -> None:
        """Time passes, from one thing that is due to the next: timers of processing time, coroutines, and `on_idle`."""
        with self._deadly():
            due_ms = self._idle()
            while not self.over and due_ms is not None and due_ms <= to_ms:
                self.clock.set(max(self.clock.now_ms(), due_ms))
                due_ms = self._idle()
        self.clock.set(max(self.clock.now_ms(), to_ms))

    def process(self, batch: AnyBatch, input_index: int) -> None:
        with self._deadly():
            self.chain.process(batch, input_index)
            self._run_coroutines()

    def poll(self, source: Source) -> Batch | Literal[SourceState.END] | None:
        """One poll; its batch goes down the chain."""
        self.woken = False
        with self._deadly():
            with blame(source, self._polled):
                polled = self._reader.poll() if self._reader is not None else END
            if polled is END:
                self.end()
            elif polled is not None:
                self.chain.process(polled, 0, 1)
                self._polled += len(polled)
        return polled

    def end(self) -> None:
        with self._deadly():
            while self.chain.advance(END_OF_TIME):
                if self.chain.is_draining:
                    self._drain()
            self.chain.end()
        self.ended = True

    def barrier(self, checkpoint_id: CheckpointId) -> Callable[[], HarnessSnapshot]:
        """The synchronous part of a snapshot; the callable writes it."""
        self.last_checkpoint = checkpoint_id
        self._job.last_checkpoint = max(self._job.last_checkpoint, checkpoint_id)
        with self._deadly():
            self.chain.checkpoint(checkpoint_id)
            offset = None
            if self.source is not None:
                with blame(self.source, self._polled):
                    offset = (offset_of(self.source),)
            watermarks = self._watermarks.snapshot(self._inputs)
            write = self.state.snapshot(checkpoint_id, offset, data_ended=self.ended, watermarks=watermarks)
        at_ms = self.clock.now_ms()
        return lambda: self._snapshot(checkpoint_id, at_ms, write()[0])

    def complete(self, checkpoint_id: CheckpointId) -> None:
        self._job.newest_completed = max(self._job.newest_completed, checkpoint_id)
        with self._deadly():
            self.chain.checkpoint_complete(checkpoint_id)

    def abort(self, checkpoint_id: CheckpointId) -> None:
        with self._deadly():
            self.chain.checkpoint_aborted(checkpoint_id)

    def own(self, batch: Batch, input_index: int) -> Any:
        """For each record whether its key is this subtask's, as an array; None when there are no keys to go by."""
        selectors, where = self._job.chain.selectors, self.deployment
        if input_index >= len(selectors) or not len(batch):
            return None
        groups = selectors[input_index].key_groups(batch, where.max_parallelism)
        first, last = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
        return (groups >= first) & (groups <= last)

    def close(self, how: str = "closed") -> list[Exception]:
        """End it in order; returns what the operators' `close` raised."""
        if self.over:
            return []
        self.over = how
        errors: list[Exception] = [*self.chain.close()]
        self.state.close()
        self._forget()
        return errors

    def crash(self) -> None:
        """End it without a word to the operators."""
        if not self.over:
            self.over = "crashed"
            self._forget()

    def _open(self, snapshots: Sequence[HarnessSnapshot]) -> None:
        for snapshot in snapshots:
            snapshot.put_files(self._storage)
        self._check_calls()
        self.state.restore()
        self.chain.open()
        if self.source is not None:
            with blame(self.source):
                continue_source(self.source, self.state.restored_offsets())
        self._watermarks.restore(self.state.restored_watermarks, self._inputs)
        if self._watermarks.current_ms != NO_WATERMARK:
            self._fire()
        self._run_coroutines()

    def _fire(self) -> None:
        with self._deadly():
            while self.chain.advance(self._watermarks.current_ms):
                pass
            self._run_coroutines()

    # -- coroutines

    def _calls_of(self, operator: Operator, backend: SharedBackend) -> AsyncCalls:
        """Without a rate: nobody grants permits here."""
        settings, chance = operator.async_settings or AsyncSettings(), self._coroutines.chance
        return AsyncCalls(
            operator, settings, backend, self._coroutines, lambda retry, tries: retry.delay_ms(tries, chance)
        )

    def _check_calls(self) -> None:
        """A job that would lose what coroutines had in flight is refused at submit."""
        for operator in self.chain.operators:
            states = [each.operators.get(operator.context.operator_id) for each in self.deployment.restored]
            in_flight = sum(handle.in_flight for state in states if state is not None for handle in state.keyed)
            if in_flight and not operator._is_async:
                raise HarnessMisused(
                    f"restore: the snapshot holds {counted(in_flight, 'record')} that coroutines of "
                    f"{operator.context.name!r} had in flight, and it runs none: leave it `async def process`"
                )

    def _run_coroutines(self) -> None:
        if self.chain.calls is not None:
            self._settle()

    def _idle(self) -> float | None:
        """As a task that has no input: do all that can be done at this time, and let operators do what they hold back.
        Returns when there will be more.
        """
        due_ms = self._settle()
        delay_ms = None if self.over else self.chain.idle()
        again_ms = None if delay_ms is None else self.clock.now_ms() + max(1.0, delay_ms)
        return min((each for each in (due_ms, again_ms) if each is not None), default=None)

    def _settle(self) -> float | None:
        """Do all that can be done at this time; returns when there will be more, or None: not by itself."""
        while not self.over:
            self._coroutines.run_ready()
            fired, wall_ms = self.chain.fire_due(self.clock.wall_ms())
            coroutines_ms = self._coroutines.next_ms()
            if not fired and (coroutines_ms is None or coroutines_ms > self.clock.now_ms()):
                due_ms = None if wall_ms is None else float(wall_ms - EPOCH_MS)
                return min((each for each in (due_ms, coroutines_ms) if each is not None), default=None)
        return None

    def _drain(self) -> None:
        """Let time pass until all that is in flight has left."""
        calls, waits, left = self.chain.calls, 0, 0
        due_ms = self._settle()
        while calls is not None and self.chain.is_draining:
            waits = waits + 1 if calls.in_flight == left else 0
            left = calls.in_flight
            if due_ms is None or waits == _MOST_WAITS:
                raise HarnessMisused(
                    f"end: {counted(left, 'record')} in flight, with coroutines that never end: "
                    f"{'nothing will wake them' if due_ms is None else 'they wait again and again'}, at "
                    f"{calls.waiting_at()}; give the operator a fake of its service that answers, or, in its "
                    "AsyncSettings, a timeout_ms"
                )
            self.clock.set(max(self.clock.now_ms(), due_ms))
            due_ms = self._settle()

    def _emit(self, batch: AnyBatch, tag: str = "") -> None:
        (self.sides.setdefault(tag, []) if tag else self.emitted).append(batch)

    def _say(self, element: Watermark | WatermarkStatus) -> None:
        if isinstance(element, Watermark):
            self.watermarks_out.append(element.timestamp_ms)

    @contextmanager
    def _deadly(self) -> Iterator[None]:
        """Whatever is raised fails the attempt, as it would fail a task: operators are closed."""
        try:
            yield
        except BaseException:
            self.close("failed")
            raise

    def _forget(self) -> None:
        """Let go of the operators, of what still runs, and of the folder."""
        self._coroutines.discard()
        self.chain = OperatorChain((), self._emit)
        self.source = None
        self._remove()

    def _wake(self) -> None:
        self.woken = True

    def _snapshot(self, checkpoint_id: CheckpointId, at_ms: float, state: SubtaskState) -> HarnessSnapshot:
        where = self.deployment
        return HarnessSnapshot(
            checkpoint_id=checkpoint_id,
            job_id=where.job_id,
            subtask_index=where.subtask_index,
            parallelism=where.parallelism,
            max_parallelism=where.max_parallelism,
            attempt_number=where.attempt_number,
            clock_ms=at_ms,
            state=state,
            files=files_of(state, self._storage),
        )


def _deployment(
    job: HostedJob, snapshots: Sequence[HarnessSnapshot], parallelism: int, subtask_index: int
) -> TaskDeployment:
    if not 0 <= subtask_index < parallelism <= job.max_parallelism:
        raise HarnessMisused(
            "wanted 0 <= subtask_index < parallelism <= max_parallelism, found "
            f"{subtask_index}, {parallelism} and {job.max_parallelism}"
        )
    if snapshots and snapshots[0].max_parallelism != job.max_parallelism:
        raise HarnessMisused(
            f"the snapshot was taken with max_parallelism {snapshots[0].max_parallelism} and cannot be restored with "
            f"{job.max_parallelism}: it says how keys are grouped"
        )
    return TaskDeployment(
        job_id=job.job_id,
        vertex_id=VERTEX,
        vertex_name=job.chain.name,
        subtask_index=SubtaskIndex(subtask_index),
        parallelism=parallelism,
        max_parallelism=job.max_parallelism,
        attempt_id=ExecutionAttemptId(next(_attempts)),
        attempt_number=1 + max([job.last_attempt, *(each.attempt_number for each in snapshots)]),
        slot=SlotIndex(0),
        inputs=(),
        outputs=(),
        operators=job.chain.descriptions,
        restored_checkpoint_id=snapshots[0].checkpoint_id if snapshots else None,
        restored=share_of_state(snapshots, parallelism, subtask_index) if snapshots else (),
    )


def _is_failover(job: HostedJob, snapshots: Sequence[HarnessSnapshot], parallelism: int) -> bool:
    """Whether nothing of this job is complete that these snapshots do not cover."""
    return bool(snapshots) and all(
        each.parallelism == parallelism and each.checkpoint_id >= job.newest_completed for each in snapshots
    )
