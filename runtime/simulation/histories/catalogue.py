"""Catalogue: all jobs that histories may run, by name."""

from __future__ import annotations

from .async_topologies import ASYNC
from .demanding_topologies import DEMANDING
from .increment_topologies import INCREMENTS
from .inlet_topologies import INLETS
from .ledger_topologies import LEDGERS
from .outlet_topologies import OUTLETS
from .timed_topologies import TIMED
from .topologies import TOPOLOGIES, Topology
from .windowed_topologies import WINDOWED

CATALOGUE: dict[str, Topology] = (
    TOPOLOGIES | DEMANDING | OUTLETS | LEDGERS | INCREMENTS | TIMED | WINDOWED | ASYNC | INLETS
)
