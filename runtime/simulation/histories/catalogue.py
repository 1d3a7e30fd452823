"""Catalogue: all jobs that histories may run, by name."""

from __future__ import annotations

from .demanding_topologies import DEMANDING
from .timed_topologies import TIMED
from .topologies import TOPOLOGIES, Topology

CATALOGUE: dict[str, Topology] = TOPOLOGIES | DEMANDING | TIMED
