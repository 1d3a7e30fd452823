"""One side of the simulator's comparison: the histories of whichever package Python imports, chunk by chunk.

    python benchmarks/sides/simulator.py [--topology chain]

Each line of its input is `first count`; it answers with JSON: the processor time in seconds that these histories took.
`traces first count` answers with digests of their traces instead, and `neutral first count` with those of the same
histories without the text of tracebacks, which tells the numbers of the package's own lines. Nothing but the standard
library and that package is imported: it may be another commit's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import traceback

from understudy.runtime.simulation.histories.campaign import Plan, quiet, run_campaign
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.verdict import replay

WARM_UP = 22
"""Histories that are not counted: what is imported, compiled and translated once is by then."""


class Standard(Plan):
    """Standard scenarios alone: themes come and go, and both sides must run the same histories."""

    __slots__ = ()

    def scenario(self, seed: int) -> Scenario:
        names = self.topologies
        return Scenario.of(seed, names[seed % len(names)] if names else None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--topology", default="")
    topologies = tuple(filter(None, parser.parse_args().topology.split(",")))
    run_campaign(Standard(1_000_000, WARM_UP, topologies, stop_after=None))
    for line in sys.stdin:
        *command, first, count = line.split()
        plan = Standard(int(first), int(count), topologies, stop_after=None)
        if command == ["neutral"]:
            _leave_tracebacks_out()
        print(json.dumps(_digests(plan) if command else _seconds(plan)), flush=True)


def _leave_tracebacks_out() -> None:
    """For good. What goes over a slow link takes time by its length, so they must not be made at all."""
    for name in ("format_exception", "format_exception_only", "walk_tb"):
        setattr(traceback, name, lambda *_, **__: [])


def _seconds(plan: Plan) -> float:
    began_s = time.process_time()
    run_campaign(plan)
    return time.process_time() - began_s


def _digests(plan: Plan) -> dict[int, str]:
    with quiet():
        return {seed: _digest(plan, seed) for seed in plan.all_seeds}


def _digest(plan: Plan, seed: int) -> str:
    """Of every line of the trace, and of the verdict."""
    verdict, trace = replay(plan.scenario(seed))
    told = hashlib.sha256()
    for line in trace.lines():
        told.update(line.encode(errors="backslashreplace") + b"\n")
    told.update(f"{verdict.status} {verdict.violations} {verdict.virtual_ms!r} {verdict.faults}".encode())
    return told.hexdigest()


if __name__ == "__main__":
    main()
