"""OperatorHarness: one subtask of an operator, or of a chain, without a cluster.

    with OperatorHarness(WorstDelay, key_by="origin") as harness:
        harness.process([Flight("JFK", 3.0)])
        snapshot = harness.snapshot()
        harness.crash()
        with harness.restored(snapshot) as after:
            after.process([Flight("JFK", 2.0)])
            assert after.output() == []

It hosts a copy of the operator, pickled as for a job, with the real context, state and chain, and stands where its
task would: elements, barriers, notifications and questions come when the test says so, on the test's own thread. Time
is virtual and moves with `advance`. A harness is one attempt: it runs until it is closed, crashed, or failed by what
user code raises. After that, use another harness, `restored` from a snapshot. Flink:
KeyedOneInputStreamOperatorTestHarness and its relatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self

import pyarrow as pa

from ....actors.flow.elements import Batch, TimedBatch
from ....actors.operators.collector import OutputTag
from ....actors.operators.operator import Operator
from ....actors.operators.source import END, Source, SourceState, offset_of
from ....actors.unrun import RETURN, result_of
from ....messages import (
    AskOperator,
    CheckpointId,
    JobId,
    OperatorAnswer,
    UnregisteredMessage,
    decode,
    encode,
    tag_of,
)
from .given import batch_of, records_of, snapshots_of, times_of
from .harness_clock import HarnessClock
from .harness_snapshot import HarnessMisused, HarnessSnapshot
from .hosted_attempt import HostedAttempt, HostedJob
from .hosted_chain import Hosted, Keys, hosted_chain
from .waiting_timers import waiting_timers

__all__ = ["HarnessMisused", "HarnessSnapshot", "OperatorHarness"]

_NO_KEY: Any = object()
_MOST_WAITS = 10_000


class OperatorHarness:
    """One attempt, open when it is made. Raises HarnessMisused for what makes no sense, and what user code raises."""

    def __init__(
        self,
        operator: Hosted,
        *,
        key_by: Keys | None = None,
        key_by_2: Keys | None = None,
        broadcast_2: bool = False,
        schemas: Sequence[pa.Schema | None] = (),
        subtask_index: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        state_backend: str = "memory",
        resources: dict[str, Any] | None = None,
        job_id: str = "harness",
        restore_from: HarnessSnapshot | Sequence[HarnessSnapshot] = (),
    ) -> None:
        """`operator`: an operator, a class that needs no arguments, a chain of them, or a stream: its last operator.

        `key_by`, `key_by_2`: the keys of the inputs, as `key_by` of a stream takes them; the second is like the first
        if it is not given. `broadcast_2`: it has none, as in `keyed.connect(rules.broadcast())`. `schemas`: the columns
        of the inputs, where a job would know them at submit. `restore_from`: snapshots of other harnesses, one per
        subtask, as a job starts from a savepoint, perhaps with newer code.
        """
        chain = hosted_chain(operator, (key_by, key_by_2), schemas, broadcast_2=broadcast_2)
        self._job = HostedJob(JobId(job_id), chain, max_parallelism, state_backend, dict(resources or {}))
        self._attempt = HostedAttempt(self._job, snapshots_of(restore_from), parallelism, subtask_index, is_start=True)

    def restored(
        self,
        snapshot: HarnessSnapshot | Sequence[HarnessSnapshot],
        *,
        parallelism: int | None = None,
        subtask_index: int | None = None,
    ) -> OperatorHarness:
        """The next attempt of the same job, restored from this snapshot, or from those of all subtasks.

        Without `parallelism` and `subtask_index` they stay as they were. A rescale makes one harness per new subtask,
        each from all snapshots. This harness is over by then, or stands for a zombie. It is a failover
        (`context.is_failover`) unless a newer checkpoint is complete here, or the parallelism changes.
        """
        snapshots = snapshots_of(snapshot)
        if not snapshots:
            raise HarnessMisused("wanted a snapshot, or one of each subtask, found none")
        before = self._attempt.deployment
        parallelism = snapshots[0].parallelism if parallelism is None else parallelism
        if subtask_index is None:
            subtask_index = before.subtask_index if before.subtask_index < parallelism else 0
        return self._attempt_of(self._job, snapshots, parallelism, subtask_index)

    @classmethod
    def _attempt_of(
        cls, job: HostedJob, snapshots: Sequence[HarnessSnapshot], parallelism: int, subtask_index: int
    ) -> Self:
        """One more attempt of a job, restored from these snapshots; from none, as before its first checkpoint."""
        made = object.__new__(cls)
        made._job = job
        made._attempt = HostedAttempt(job, snapshots, parallelism, subtask_index)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _traceback: object) -> None:
        """Close; when the block raised, its error is reported."""
        if kind is None:
            self.close()
        else:
            self._attempt.close()

    def __repr__(self) -> str:
        where = self._attempt.deployment
        subtask = f"subtask {where.subtask_index} of {where.parallelism}"
        state = self._attempt.over or "running"
        return f"<harness of {self._job.chain.name}, {subtask}, attempt {where.attempt_number}: {state}>"

    # -- time

    @property
    def clock(self) -> HarnessClock:
        return self._attempt.clock

    def advance(self, by_ms: float) -> None:
        """Let this much time pass: processing-time timers fire, each at its time. Event time does not: see `watermark`.

        Warns once where timers of event time wait, no watermark has come, and nothing else goes by the clock.
        """
        self.clock.check(by_ms)
        self._warn_of_event_time()
        self._let_pass(by_ms)

    def _let_pass(self, by_ms: float) -> None:
        self._attempt.advance(self.clock.now_ms() + by_ms)
        self._job.now_ms = max(self._job.now_ms, self.clock.now_ms())

    # -- input

    def process(
        self, records: Batch | Iterable[Any], input_index: int = 0, *, timestamps: Sequence[int] | None = None
    ) -> None:
        """One batch arrives: records, or columns. `input_index` 1 is the second input of a connected stream.
        `timestamps`: the event time of each record, in ms; None: they have none.

        Under a parallelism above 1 a keyed batch must be this subtask's own, as it would be in a job: see `share_of`.
        """
        self._check_input(input_index)
        batch = batch_of(records)
        self._check_own_keys(batch, input_index)
        if isinstance(timestamps, int | float):
            raise HarnessMisused(f"timestamps: wanted a list with one for each record, found {timestamps!r}")
        if timestamps is not None and len(timestamps) != len(batch):
            raise HarnessMisused(f"timestamps: wanted {len(batch)}, one for each record, found {len(timestamps)}")
        if len(batch):
            timed = batch if timestamps is None else TimedBatch(batch, times_of("timestamps", timestamps))
            self._attempt.process(timed, input_index)

    def watermark(self, watermark_ms: int, input_index: int = 0) -> None:
        """A watermark arrives on one input: no record with this or an older time comes there any more, but late ones.
        Of two inputs the slower one counts.
        """
        self._check_input(input_index)
        self._attempt.receive(int(times_of("watermark", [watermark_ms])[0]), input_index)

    def share_of(self, records: Batch | Iterable[Any], input_index: int = 0) -> Batch:
        """Those of the records whose keys this subtask owns; all of them when there are no keys."""
        batch = batch_of(records)
        own = self._attempt.own(batch, input_index)
        if own is None:
            return batch
        if isinstance(batch, pa.RecordBatch):
            return batch.filter(pa.array(own))
        return [record for record, is_own in zip(batch, own.tolist(), strict=True) if is_own]

    def end(self) -> None:
        """All inputs have ended: operators emit what is left. Where it had ended before the snapshot that was restored,
        they have done so already.
        """
        self._check_running()
        if not self._attempt.ended:
            self._attempt.end()

    # -- a source's input

    def poll(self, *, wait: bool = False) -> Batch | Literal[SourceState.END] | None:
        """Poll the source and send what it returns down the chain; None when it has nothing yet.

        `wait`: let time pass where the source asks for it; None is then one that waits to be woken, or waits too long.
        """
        source = self._own_source()
        for _ in range(_MOST_WAITS):
            polled = END if self._attempt.ended else self._attempt.poll(source)
            if polled is not None or not wait:
                return polled
            delay_ms = source.poll_delay_ms()
            if delay_ms is not None:
                self._let_pass(delay_ms)
            elif not self._attempt.woken:
                return None
        return None

    def drain(self, max_polls: int = 10_000) -> bool:
        """Poll to the source's end, letting time pass. False when there is no end, as `poll` and `max_polls` say."""
        for _ in range(max_polls):
            polled = self.poll(wait=True)
            if polled is None or polled is END:
                return polled is END
        return False

    def offset(self) -> Any:
        """Where the source stands: what a checkpoint would record now."""
        return offset_of(self._own_source())

    # -- output

    def output(self) -> list[Any]:
        """The records emitted since the last take, in order; those of columns as Rows."""
        return [record for batch in self._attempt.emitted for record in records_of(batch)]

    def take_output(self) -> list[Any]:
        """The same, and forget them."""
        return [record for batch in self.take_batches() for record in records_of(batch)]

    def timed_output(self) -> list[tuple[Any, int | None]]:
        """As `output`, each record with its event time; None for one that has none."""
        found: list[tuple[Any, int | None]] = []
        for batch in self._attempt.emitted:
            times = batch.times.tolist() if isinstance(batch, TimedBatch) else [None] * len(batch)
            found += zip(records_of(batch), times, strict=True)
        return found

    def side_output(self, tag: OutputTag) -> list[Any]:
        """The records that went to this side output since the attempt began, in order. Raises HarnessMisused."""
        if not isinstance(tag, OutputTag):
            raise HarnessMisused(
                f"side_output: wanted an OutputTag, such as OutputTag({str(tag)!r:.60}), found {tag!r:.60}"
            )
        return [record for batch in self._attempt.sides.get(tag.name, ()) for record in records_of(batch)]

    def watermarks(self) -> list[int]:
        """The watermarks that went on behind the operator, in order."""
        return list(self._attempt.watermarks_out)

    def take_batches(self) -> list[Batch]:
        """As `take_output`, but batch by batch, as they were emitted."""
        batches = [batch.records if isinstance(batch, TimedBatch) else batch for batch in self._attempt.emitted]
        self._attempt.emitted.clear()
        return batches

    # -- checkpoints

    def snapshot(self, checkpoint_id: int | None = None) -> HarnessSnapshot:
        """A barrier comes: snapshot the state and write it. Ids increase; without one it is the next.

        What user code raises at the barrier ends the attempt; a state that cannot be written is raised and does not.
        """
        return self.begin_snapshot(checkpoint_id)()

    def begin_snapshot(self, checkpoint_id: int | None = None) -> Callable[[], HarnessSnapshot]:
        """The synchronous part of `snapshot`; the callable writes, once, before the attempt is over.

        In a job that is another thread's, and later: what is processed in between must not show in the snapshot.
        """
        self._check_running()
        last = self._attempt.last_checkpoint
        taken = last + 1 if checkpoint_id is None else checkpoint_id
        if taken <= last:
            raise HarnessMisused(f"checkpoint_id: wanted one above {last}, the last one, found {taken}")
        return self._attempt.barrier(CheckpointId(taken))

    def complete(self, checkpoint: HarnessSnapshot | int) -> None:
        """This checkpoint is stored permanently: sinks commit."""
        self._attempt.complete(self._known(checkpoint))

    def abort(self, checkpoint: HarnessSnapshot | int) -> None:
        """This checkpoint will never complete."""
        self._attempt.abort(self._known(checkpoint))

    # -- questions

    def ask(self, message: Any, *, key: Any = _NO_KEY, operator: str | None = None) -> Any:
        """What `on_receive` answers. Question and answer travel as in a job, and state is read-only meanwhile.

        `operator`: the name of one in a chain; without it, the first that answers questions.
        """
        self._check_running()
        asked = self._asked(operator)
        question = decode(encode(_question(self._job.job_id, asked.context.name, message, key)))
        received = question.plain_question if question.question is None else question.question
        with self._attempt.state.reading(asked, question.has_key, question.key):
            answer = result_of(asked, "on_receive", received, in_place_of_yield=RETURN)
        return decode(encode(OperatorAnswer(answer))).answer

    # -- the end of the attempt

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The copies that run here. To look at: no job would see a change that is made here."""
        self._check_running()
        return self._attempt.chain.operators

    @property
    def operator(self) -> Any:
        """The first of them."""
        return self.operators[0]

    def close(self) -> None:
        """End the attempt in order; raises what the operators' `close` raised. Repeats are harmless."""
        errors = self._attempt.close()
        if errors:
            raise errors[0]

    def crash(self) -> None:
        """The process dies: nothing is closed, and everything outside of snapshots is lost. Repeats are harmless."""
        self._attempt.crash()

    # -- checks

    def _warn_of_event_time(self) -> None:
        if self._job.knows_of_event_time or self._attempt.over:
            return
        if told := waiting_timers(self._attempt.chain):
            self._job.knows_of_event_time = True
            warnings.warn(told, RuntimeWarning, stacklevel=3)

    def _check_running(self) -> None:
        if self._attempt.over:
            raise HarnessMisused(f"this attempt is over ({self._attempt.over}): go on with harness.restored(snapshot)")

    def _check_input(self, input_index: int) -> None:
        self._check_running()
        inputs = self._job.chain.inputs
        if not inputs:
            raise HarnessMisused("a source takes no input: call poll() or drain()")
        if input_index not in range(inputs):
            raise HarnessMisused(f"input_index: wanted one of {list(range(inputs))}, found {input_index!r}")
        if self._attempt.ended:
            raise HarnessMisused("the data has ended here: no records come after that")

    def _check_own_keys(self, batch: Batch, input_index: int) -> None:
        where = self._attempt.deployment
        own = self._attempt.own(batch, input_index) if where.parallelism > 1 else None
        if own is not None and not own.all():
            record = records_of(batch)[own.tolist().index(False)]
            raise HarnessMisused(
                f"record {record!r:.80} belongs to another subtask by its key, and this is subtask "
                f"{where.subtask_index} of {where.parallelism}: process(harness.share_of(records))"
            )

    def _own_source(self) -> Source:
        self._check_running()
        if self._attempt.source is None:
            raise HarnessMisused(f"{self._job.chain.name} is no source: feed it with process(records)")
        return self._attempt.source

    def _known(self, checkpoint: HarnessSnapshot | int) -> CheckpointId:
        self._check_running()
        checkpoint_id = checkpoint.checkpoint_id if isinstance(checkpoint, HarnessSnapshot) else checkpoint
        if not 0 < checkpoint_id <= self._attempt.last_checkpoint:
            last = self._attempt.last_checkpoint
            raise HarnessMisused(f"no barrier of checkpoint {checkpoint_id} has come here; the last one was {last}")
        return CheckpointId(checkpoint_id)

    def _asked(self, name: str | None) -> Operator:
        if name is None:
            answering = (one for one in self.operators if type(one).on_receive is not Operator.on_receive)
            return next(answering, self.operators[0])
        found = self._attempt.chain.find(name)
        if found is None:
            raise HarnessMisused(f"no operator {name!r}; there are {[each.context.name for each in self.operators]}")
        return found


def _question(job_id: JobId, operator: str, message: Any, key: Any) -> AskOperator:
    try:
        tag_of(message)
        question, plain = message, None
    except UnregisteredMessage:
        question, plain = None, message
    has_key = key is not _NO_KEY
    return AskOperator(job_id, operator, has_key, key if has_key else None, question, plain)
