"""Outlet topologies: jobs that end in an outlet beside the sink that the other oracles look at. Their readers are in
`outlet_readers.py`.
"""

from __future__ import annotations

from ...api.environment import StreamEnvironment
from .topologies import Topology, Workload, all_counts, by_name, counting_job

OUTLET = "outlet"


def _followed(workload: Workload) -> StreamEnvironment:
    env, counts = counting_job(workload)
    counts.to_outlet(OUTLET, retention_ms=None)
    return env


OUTLETS = by_name(Topology("followed", _followed, all_counts, counts_up=True, has_outlet=True))
