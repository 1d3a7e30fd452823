"""All mutants, in the order of the layers that they break."""

from __future__ import annotations

from . import (
    async_mutants,
    blind_spot_mutants,
    buffer_mutants,
    checkpoint_mutants,
    cluster_mutants,
    expiry_mutants,
    increment_mutants,
    inlet_mutants,
    known_key_mutants,
    ledger_mutants,
    outlet_mutants,
    output_mutants,
    savepoint_mutants,
    time_mutants,
    transaction_mutants,
    unaligned_mutants,
    window_mutants,
)
from .mutant import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "async_mutants",
    "blind_spot_mutants",
    "buffer_mutants",
    "checkpoint_mutants",
    "cluster_mutants",
    "expiry_mutants",
    "increment_mutants",
    "inlet_mutants",
    "known_key_mutants",
    "ledger_mutants",
    "outlet_mutants",
    "output_mutants",
    "savepoint_mutants",
    "time_mutants",
    "transaction_mutants",
    "unaligned_mutants",
    "window_mutants",
]
