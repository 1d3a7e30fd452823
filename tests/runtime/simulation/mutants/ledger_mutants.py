"""Mutants of LedgerSink: its key, its marker, and when it applies what."""

from __future__ import annotations

from typing import Any

from understudy.actors.operators.ledger_sink import LedgerSink
from understudy.actors.operators.marker import Marker
from understudy.actors.restore.restore_points import RestorePoints
from understudy.messages import CheckpointId
from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.world.fake_ledger import LedgerContents

from .mutant import LIVENESS, Patch, mutant

EFFECTS = "effects"


def booked(seed: int) -> Scenario:
    """Any history of the job that ends in a ledger."""
    return standard_history(seed, "booked")


@mutant(EFFECTS, within=60, scenarios=booked)
def the_marker_of_a_ledger_is_not_compared(patch: Patch) -> None:
    """An act that comes late, or from a zombie, is done as well."""

    def act(self: LedgerContents, writer: str, after: int, sequence: int, rows: Any) -> None:
        self.rows.extend(rows)
        self.markers[writer] = max(sequence, self.markers.get(writer, 0))

    patch.setattr(LedgerContents, "act", act)


@mutant(EFFECTS, LIVENESS, within=120, scenarios=booked)
def the_fork_is_kept_after_a_restore_from_an_older_checkpoint(patch: Patch) -> None:
    """Each restore is taken for a failover; in another job, too."""
    patch.setattr(RestorePoints, "is_failover", lambda self, restored: True)


@mutant(EFFECTS, LIVENESS, within=60, scenarios=booked)
def the_sequence_of_a_ledger_is_not_in_its_state(patch: Patch) -> None:
    remember = LedgerSink._remember

    def forget(self: Any) -> None:
        remember(self)
        self._writers_state.update([(*item[:3], 0) for item in self._writers_state.get()])

    patch.setattr(LedgerSink, "_remember", forget)


@mutant(EFFECTS, LIVENESS, within=60, scenarios=booked)
def a_ledger_is_applied_at_the_barrier(patch: Patch) -> None:
    on_checkpoint = LedgerSink.on_checkpoint

    def hasty(self: Any, checkpoint_id: CheckpointId) -> None:
        on_checkpoint(self, checkpoint_id)
        self.on_checkpoint_complete(checkpoint_id)

    patch.setattr(LedgerSink, "on_checkpoint", hasty)


@mutant(EFFECTS, within=60, scenarios=booked)
def an_act_whose_outcome_is_unknown_is_done_again_blindly(patch: Patch) -> None:
    """The marker is read only to know where it has to be moved from."""

    def apply(self: Any, batches: Any) -> None:
        writer = batches[0].writer
        after = self.last_marker(writer.name) or 0
        data = [batch for each in batches for batch in self.unstage(each.handle)]
        self.apply(data, Marker(writer.sink, writer.name, after + len(batches), after))

    patch.setattr(LedgerSink, "_apply", apply)


@mutant(EFFECTS, LIVENESS, within=60, scenarios=booked)
def restored_batches_are_applied_under_the_new_name(patch: Patch) -> None:
    """What was applied already is applied once more, after each rescale and each start from a savepoint."""
    opened = LedgerSink._opened

    def renamed(self: Any) -> None:
        items = self._staged_state.get()
        restore = type(self)._restore_writer

        def rename(sink: Any) -> None:
            restore(sink)
            if not sink.context.is_failover:
                batches = [handle for _, _, staged in items for _, handle in staged]
                sink._sequence = len(batches)
                numbered = list(enumerate(batches, 1))
                own = [(sink._writer.sink, sink._writer.name, numbered)] if numbered else []
                sink._staged_state.update(own)

        self._restore_writer = rename.__get__(self)
        opened(self)

    patch.setattr(LedgerSink, "_opened", renamed)


@mutant(EFFECTS, within=60, scenarios=booked)
def a_job_finishes_before_its_ledger_is_written(patch: Patch) -> None:
    patch.setattr(LedgerSink, "_has_applied_all", property(lambda self: True))
