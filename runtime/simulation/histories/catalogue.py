"""Catalogue: all jobs that histories may run, by name."""

from __future__ import annotations

from .async_topologies import ASYNC
from .broadcast_topologies import BROADCAST
from .demanding_topologies import DEMANDING
from .expiring_topologies import EXPIRING
from .increment_topologies import INCREMENTS
from .inlet_topologies import INLETS
from .ledger_topologies import LEDGERS
from .outlet_topologies import OUTLETS
from .timed_topologies import TIMED
from .topologies import TOPOLOGIES, Topology
from .transaction_topologies import TRANSACTED
from .windowed_topologies import WINDOWED

CATALOGUE: dict[str, Topology] = (
    TOPOLOGIES
    | DEMANDING
    | BROADCAST
    | OUTLETS
    | LEDGERS
    | TRANSACTED
    | INCREMENTS
    | EXPIRING
    | TIMED
    | WINDOWED
    | ASYNC
    | INLETS
)
