"""Mutants of a sink of transactions: when the job of `transacted` commits and aborts, and what it remembers of it."""

from __future__ import annotations

from typing import Any

from understudy.messages import CheckpointId
from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.transaction_topologies import Transacted

from .mutant import LIVENESS, Patch, mutant, nothing

EFFECTS = "effects"


def transacted(seed: int) -> Scenario:
    """Any history of the job whose sink is strict."""
    return standard_history(seed, "transacted")


@mutant(EFFECTS, within=60, scenarios=transacted)
def a_commit_is_not_repeated_after_a_restore(patch: Patch) -> None:
    patch.setattr(Transacted, "recover_and_commit", nothing)


@mutant(EFFECTS, LIVENESS, within=60, scenarios=transacted)
def what_was_prepared_is_aborted_on_restore(patch: Patch) -> None:
    patch.setattr(Transacted, "recover_and_commit", Transacted.abort)


@mutant(EFFECTS, LIVENESS, within=60, scenarios=transacted)
def a_transaction_is_committed_at_the_barrier(patch: Patch) -> None:
    on_checkpoint = Transacted.on_checkpoint

    def hasty(self: Any, checkpoint_id: CheckpointId) -> None:
        on_checkpoint(self, checkpoint_id)
        self.commit(self._pending[-1].handle)

    patch.setattr(Transacted, "on_checkpoint", hasty)
