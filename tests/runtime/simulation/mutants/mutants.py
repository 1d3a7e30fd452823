"""All mutants, in the order of the layers that they break."""

from __future__ import annotations

from . import buffer_mutants, checkpoint_mutants, cluster_mutants, output_mutants, savepoint_mutants, unaligned_mutants
from .mutant import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "buffer_mutants",
    "checkpoint_mutants",
    "cluster_mutants",
    "output_mutants",
    "savepoint_mutants",
    "unaligned_mutants",
]
