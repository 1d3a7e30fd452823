"""A job that ends in a strict TwoPhaseCommitSink, beside the sink that the other oracles look at.

The outside system forgets nothing, and refuses what cannot be: to commit what was aborted or not prepared, to abort
what is committed, to write to what is prepared. Each transaction ends with the job and the checkpoint that it was
prepared for, and each sink that is opened notes the ones that its state is of. So of a job that another one has taken
the place of, what it committed up to the other's savepoint counts; of the last job, all. Within a job nothing that is
committed may come again, so none of its files rots.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

from ....actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ....messages import CheckpointId
from ....state import OperatorListState
from ...api.environment import StreamEnvironment
from ..world.transactional_log import TransactionalLog, TransactionError
from .topologies import Topology, Workload, all_counts, by_name, counting_job, wrong_counts

ROWS, ORIGINS = TransactionalLog("transacted"), TransactionalLog("origins of transacted")
_PREPARED = "prepared"
EVER = 1 << 60


class Transacted(TwoPhaseCommitSink[str]):
    """Rows, and at the end of each transaction (_PREPARED, job, checkpoint)."""

    takes = "records"

    _origin: OperatorListState[Any] = OperatorListState(object, mode="union", name="origin")
    """(job, checkpoint) of the snapshot, of each subtask."""
    _prepares: CheckpointId
    _is_of_another_job: bool

    def open(self) -> None:
        job, origins = self.context.job_id, sorted({tuple(each) for each in self._origin.get()})
        ORIGINS.write([(job, *origin) for origin in origins] or [(job,)])
        self._is_of_another_job = any(origin != job for origin, _ in origins)
        super().open()

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._prepares = checkpoint_id
        super().on_checkpoint(checkpoint_id)
        self._origin.update([(self.context.job_id, checkpoint_id)])

    def begin_transaction(self) -> str:
        return ROWS.begin()

    def write(self, transaction: str, batch: Any) -> None:
        ROWS.append(transaction, [tuple(row) for row in batch])

    def pre_commit(self, transaction: str) -> None:
        ROWS.append(transaction, [(_PREPARED, self.context.job_id, self._prepares)])
        ROWS.prepare(transaction)

    def commit(self, transaction: str) -> None:
        ROWS.commit(transaction)

    def abort(self, transaction: str) -> None:
        ROWS.abort(transaction)

    def recover_and_abort(self, transaction: str) -> None:
        """A job that went on after its savepoint has committed it, perhaps: that counts no more."""
        with suppress(TransactionError) if self._is_of_another_job else nullcontext():
            self.abort(transaction)


def _transacted(workload: Workload) -> StreamEnvironment:
    env, counts = counting_job(workload)
    counts.sink_to(Transacted(), name="transacted")
    return env


def counting(notes: list[tuple[Any, ...]]) -> dict[str, int]:
    """By job, up to which checkpoint its transactions count. `notes`: (job,), or (job, origin, checkpoint)."""
    job = notes[-1][0]
    counts = {job: EVER}
    while others := [note for note in notes if len(note) > 1 and note[0] == job != note[1]]:
        _, job, checkpoint = others[0]
        counts[job] = checkpoint
    return counts


def _what_is_wrong(workload: Workload, is_whole: bool) -> str:
    notes = ORIGINS.committed()
    if not notes:
        return "it was never opened" if is_whole else ""
    counts, found, transaction = counting(notes), list[Any](), list[Any]()
    for row in ROWS.committed():
        if row[0] != _PREPARED:
            transaction.append(row)
            continue
        _, job, checkpoint = row
        if checkpoint <= counts.get(job, -1):
            found.extend(transaction)
        transaction = []
    return wrong_counts(found, workload, is_whole=is_whole)


TRANSACTED = by_name(
    Topology("transacted", _transacted, all_counts, counts_up=True, outside=_what_is_wrong, takes_nothing_back=True)
)
