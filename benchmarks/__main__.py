"""`python -m benchmarks NAME [--json FILE] [--runs N]`."""

from __future__ import annotations

import signal
import sys

import click

from .async_calls import async_calls
from .checkpoint import checkpoint
from .encryption import encryption
from .first_output import first_output
from .growth import growth
from .increments import increments
from .inlet import inlet
from .kafka import kafka
from .keyed_aggregate import keyed_aggregate
from .lakes import lakes
from .latency import latency
from .many_subtasks import many_subtasks
from .metrics import metrics
from .nexmark.comparison import nexmark
from .outlet import outlet
from .pagerank import pagerank
from .recovery import recovery
from .rocksdb import rocksdb
from .savepoint_data import savepoint_data
from .simulator import simulator
from .sql import sql
from .stateful_function import stateful_function
from .timers import timers
from .watching import watching
from .window_state import window_state
from .windows import windows


@click.group()
def main() -> None:
    """Measure Understudy. Every benchmark checks its answer, and its exit code is 1 when that is wrong."""


for command in (
    keyed_aggregate,
    stateful_function,
    async_calls,
    latency,
    outlet,
    sql,
    checkpoint,
    growth,
    inlet,
    first_output,
    recovery,
    simulator,
    windows,
    timers,
    nexmark,
    window_state,
    savepoint_data,
    kafka,
    lakes,
    increments,
    encryption,
    rocksdb,
    watching,
    metrics,
    many_subtasks,
    pagerank,
):
    main.add_command(command)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that sides are ended, too
    main(prog_name="python -m benchmarks")
