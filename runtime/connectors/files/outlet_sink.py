"""OutletSink: output that is read while the job runs, by `job.outlet(name)`, exactly once and in one order.

One subtask writes it. The records between two barriers go into segments on the checkpoint storage, and are prepared
with the snapshot; once the checkpoint is complete the JobManager learns of them, which is the commit: from then on
readers get them. State is small: where the outlet ends, and which attempts have written it (`state/outlets`). Which
segments there are, the folder says.

    barrier:    segments written and synced     state: end, branches
    complete:   OutletCommitted to the JobManager; then segments that are too old, or too many, are deleted
    restore:    what lies before the restored end is committed; the attempt begins a branch there (OutletOpened)

A zombie commits nothing: the JobManager takes the word of the current attempt alone. What an attempt had prepared for a
checkpoint that never was, a later one of the job removes.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import count
from typing import Any, ClassVar, TypedDict

from ....actors.flow.elements import Batch
from ....actors.operators.operator import Takes
from ....actors.operators.two_phase_commit_sink import TRANSACTIONS, TwoPhaseCommitSink
from ....actors.setting_limits import most_of
from ....messages import CheckpointId, OutletBranch, OutletCommitted, OutletOpened
from ....state import CheckpointStorage, OperatorListState
from ....state.errors import MissingState
from ....state.outlets.lineage import OUTLET_STATE, OutletLineage
from ....state.outlets.segments import Segment, committed_of, read_segment, segments_in
from .committed_files import fingerprint, slug
from .segment_writer import SegmentWriter

log = logging.getLogger(__name__)

DAY_MS = 86_400_000.0
_LONGEST_BEGINNING = 100
"""Of an outlet's name, in the name of its folder: a file system takes 255 bytes."""
DELETED_AT_ONCE = 64
"""At most this number of files go after a commit: the task stands still meanwhile."""


class OutletTransaction(TypedDict):
    """The names of its segments, in order, once it is pre-committed; and where they lie."""

    root: str
    folder: str
    segments: list[str]


class OutletState(TypedDict):
    """An outlet at a checkpoint, with all that is prepared for it."""

    outlet: str
    root: str
    folder: str
    branches: list[list[Any]]
    end: int


class OutletSink(TwoPhaseCommitSink[OutletTransaction]):
    """Segments are kept for `retention_ms` after they were written, and no more of them than `retention_bytes`,
    but for those of the last commit; None: no such limit.
    """

    takes: ClassVar[Takes] = "any"

    _state = OperatorListState(dict, name=OUTLET_STATE)
    _state.beside = TRANSACTIONS

    def __init__(self, retention_ms: float | None = DAY_MS, retention_bytes: int | None = None) -> None:
        self.retention_ms = _positive("retention_ms", retention_ms)
        self.retention_bytes = _positive("retention_bytes", retention_bytes)
        self.root = ""
        """The job's checkpoint directory, set where the job is submitted."""
        self._writer: SegmentWriter | None = None

    # -- life cycle

    def open(self) -> None:
        if not self.root:
            raise ValueError(f"outlet {self.context.name!r} was given no checkpoint directory")
        suffixes = count()
        attempt = slug(self.context.attempt_id)
        is_used = any(state["root"] == self.root for state in self._state.get())
        self._storage = CheckpointStorage(self.root, new_suffix=lambda: f"{attempt}-{next(suffixes)}", has_mark=is_used)
        before, end = self._restored_lineage()
        context = self.context
        self._lineage = before.continued(
            _short(context.job_id), context.attempt_number, _short(context.attempt_id), end
        )
        self._folder = f"outlets/{self._lineage.outlet}"
        super().open()
        there = segments_in(self._storage, self._folder)
        self._kept = deque(committed_of(there, self._lineage, end))
        self._kept_bytes = sum(segment.size_bytes for segment in self._kept)
        self._committed_end = end
        self._remove_leftovers(there, end)
        branch = self._lineage.branches[-1]
        self._writer = SegmentWriter(self._storage, self._folder, branch, end, context.clock.wall_ms)
        self._report_opened(end)

    def _say_again(self) -> None:
        super()._say_again()
        self._report_opened(self._committed_end)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        super().on_checkpoint(checkpoint_id)
        lineage = self._lineage
        state: OutletState = {
            "outlet": lineage.outlet,
            "root": self.root,
            "folder": self._folder,
            "branches": [[each.job, each.attempt_number, each.attempt, each.first] for each in lineage.branches],
            "end": self._opened_writer().position,
        }
        self._state.update([dict(state)])

    # -- transactions

    def begin_transaction(self) -> OutletTransaction:
        return {"root": self.root, "folder": self._folder, "segments": []}

    def write(self, transaction: OutletTransaction, batch: Batch) -> None:
        self._opened_writer().add(batch)

    def pre_commit(self, transaction: OutletTransaction) -> OutletTransaction:
        return {**transaction, "segments": [segment.name for segment in self._opened_writer().taken()]}

    def commit(self, transaction: OutletTransaction) -> None:
        """The JobManager takes it from here. Which files go next is said before they go."""
        segments = [segment for name in transaction["segments"] if (segment := Segment.named(name)) is not None]
        if not segments:
            return
        self._kept.extend(segments)
        self._kept_bytes += sum(segment.size_bytes for segment in segments)
        self._committed_end = segments[-1].end
        superfluous = self._superfluous(segments[0].first)
        context = self.context
        names = tuple(transaction["segments"])
        context.report(OutletCommitted(context.job_id, context.attempt_id, context.operator_id, names, self._first))
        self._remove(superfluous)

    def recover_and_commit(self, transaction: OutletTransaction) -> None:
        """It is committed by being before the restored end. What lies below another checkpoint directory, as that of a
        job before this one, is brought here; where the directory was moved, or copied, it is here already.
        """
        if transaction["root"] == self.root:
            return
        there = CheckpointStorage(transaction["root"])
        for name in transaction["segments"]:
            if self._storage.exists(f"{self._folder}/{name}"):
                continue
            segment = Segment.named(name)
            assert segment is not None, f"{name} is no name of a segment"
            try:
                data = read_segment(there, transaction["folder"], segment)
            except MissingState:  # its readers get a CursorExpired
                log.warning("%s: %s is not in %s any more", self.context.name, name, transaction["root"])
            else:
                self._storage.write_sealed(f"{self._folder}/{name}", data)

    def recover_and_abort(self, transaction: OutletTransaction) -> None:
        """Its segments are not in the lineage: `open` removes them."""

    def abort(self, transaction: OutletTransaction) -> None:
        if self._writer is not None:
            self._remove(self._writer.drop())

    # -- details

    def _opened_writer(self) -> SegmentWriter:
        assert self._writer is not None, "the sink is not open"
        return self._writer

    def _restored_lineage(self) -> tuple[OutletLineage, int]:
        """That of the checkpoint, and where it ends; of a fresh job, an empty one."""
        states = self._state.get()
        if not states:
            context = self.context
            begins = slug(context.name)[:_LONGEST_BEGINNING]
            outlet = f"{begins}-{fingerprint(f'{context.job_id}/{context.operator_id}')[:8]}"
            return OutletLineage(outlet, ()), 0
        (state,) = states
        return OutletLineage(state["outlet"], tuple(OutletBranch(*each) for each in state["branches"])), state["end"]

    @property
    def _first(self) -> int:
        return self._kept[0].first if self._kept else self._committed_end

    def _report_opened(self, end: int) -> None:
        context, lineage = self.context, self._lineage
        context.report(
            OutletOpened(
                context.job_id,
                context.attempt_id,
                context.operator_id,
                lineage.outlet,
                self._folder,
                lineage.branches,
                self._first,
                end,
            )
        )

    def _superfluous(self, newest_from: int) -> list[Segment]:
        """The oldest segments, as far as they are too old or too many, and not of the latest commit. Kept no more."""
        age_ms, limit = self.retention_ms, self.retention_bytes
        oldest_ms = None if age_ms is None else self.context.clock.wall_ms() - age_ms
        found: list[Segment] = []
        while len(found) < DELETED_AT_ONCE and self._kept and self._kept[0].first < newest_from:
            is_old = oldest_ms is not None and self._kept[0].written_ms < oldest_ms
            if not is_old and (limit is None or self._kept_bytes <= limit):
                break
            found.append(self._kept.popleft())
            self._kept_bytes -= found[-1].size_bytes
        return found

    def _remove_leftovers(self, there: list[Segment], end: int) -> None:
        """What earlier attempts of this job have prepared, and is not in the lineage; and what they have not written to
        its end. Files of other jobs are theirs: they may go on from the same savepoint.
        """
        own = self._lineage.branches[-1]

        def is_earlier(segment: Segment | None) -> bool:
            branch = None if segment is None else segment.branch
            return branch is not None and branch.job == own.job and branch.attempt_number < own.attempt_number

        owns = self._lineage.owns
        dead = [each for each in there if is_earlier(each) and not (each.end <= end and owns(each.branch, each.first))]
        self._remove(dead)
        self._storage.delete_torn(self._folder, lambda name: is_earlier(Segment.named(name)))

    def _remove(self, segments: list[Segment]) -> None:
        """Of no consequence if it fails: they are in no one's way."""
        try:
            for segment in segments:
                self._storage.delete(f"{self._folder}/{segment.name}")
        except OSError as error:
            log.warning("%s: could not remove segments: %s", self.context.name, error)


def _short(text: str) -> str:
    return fingerprint(text)[:8]


def _positive(name: str, value: Any) -> Any:
    if value is not None and not (isinstance(value, int | float) and not isinstance(value, bool) and value > 0):
        raise ValueError(f"{name}: wanted a number above 0, or None, found {value!r}")
    if value is not None and value > most_of(name):
        raise ValueError(f"{name}: wanted a number up to {most_of(name)}, or None, found {value!r:.80}")
    return value
