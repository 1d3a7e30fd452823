"""Outlet topologies: jobs that end in an outlet beside the sink that the other oracles look at. Their readers are in
`outlet_readers.py`.
"""

from __future__ import annotations

from ...api.environment import StreamEnvironment
from .topologies import OUTPUT, Counter, Topology, Workload, _all, _counted, _numbers, environment

OUTLET = "outlet"


def _followed(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    counts = _numbers(env, workload).key_by(lambda number: number % keys).process(Counter, name="count")
    counts.collect(name=OUTPUT)
    counts.to_outlet(OUTLET, retention_ms=None)
    return env


OUTLETS: dict[str, Topology] = {
    each.name: each
    for each in (
        Topology("followed", _followed, lambda work: _counted(_all(work), work.keys), counts_up=True, has_outlet=True),
    )
}
"""By name."""
