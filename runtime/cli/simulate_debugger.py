"""A simulated history under pdb. Nothing but the stop itself happens to it: it goes as it goes without."""

from __future__ import annotations

import os
import pdb
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..oracles import Violation
from ..simulation.histories.campaign import quiet
from ..simulation.histories.history import run_history
from ..simulation.histories.scenario import Scenario
from ..simulation.histories.verdict import verdict_on
from ..simulation.world.cluster import SimulatedCluster


def debug(scenario: Scenario, break_at_ms: float | None) -> int:
    """Stop where the first oracle breaks, at a virtual time, or where the simulator raises. Returns the exit code."""
    with quiet(), _own_interrupts():
        try:
            outcome = run_history(scenario, lambda cluster: _Stops(cluster, break_at_ms))
        except Exception as error:  # noqa: BLE001  (it is what is looked for)
            click.echo(f"{type(error).__name__}: {error}")
            pdb.post_mortem(error.__traceback__)
            return 1
    broken = verdict_on(outcome).broken
    click.echo(f"{outcome.status} at {outcome.virtual_ms / 1000:.3f} s; {broken or 'no oracle broke'}")
    return 1 if broken else 0


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """After `continue` Ctrl-C leads back to pdb; once the history is over it does what it did before."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Stops:
    """Hung onto one cluster."""

    def __init__(self, cluster: SimulatedCluster, break_at_ms: float | None) -> None:
        self._cluster = cluster
        self._report = cluster.probes.report
        self._has_stopped = False
        cluster.probes.report = self._on_violation  # type: ignore[method-assign]
        if break_at_ms is not None:
            cluster.world.at(break_at_ms, None, self._on_time)

    def _on_violation(self, oracle: str, problem: str) -> None:
        self._report(oracle, problem)
        if not self._has_stopped:
            self._has_stopped = True
            click.echo(f"{self._cluster.now_ms / 1000:.3f} s: {Violation(oracle, problem)}")
            _stop(sys._getframe().f_back)

    def _on_time(self) -> None:
        cluster = self._cluster
        click.echo(f"{cluster.now_ms / 1000:.3f} s; `cluster` has the world, the network and the disk")
        _stop(sys._getframe())


class _Debugger(pdb.Pdb):
    """To quit is to end the process at once: an exception would be taken for a failure of whoever is running."""

    def do_quit(self, arg: str) -> None:
        sys.stdout.flush()
        os._exit(1)

    do_q = do_exit = do_quit


def _stop(frame: Any) -> None:
    """Stop in this frame, at the next line that it runs. Piped input is read like typed input."""
    debugger = _Debugger() if sys.stdin.isatty() else _Debugger(stdin=sys.stdin, stdout=sys.stdout)
    debugger.set_trace(frame)
