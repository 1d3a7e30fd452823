"""What `understudy simulate` says about a history, and what it writes about all of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from ...messages.counted import counted
from ..simulation.histories.campaign import Figures, Plan, quiet
from ..simulation.histories.mix import standard_history
from ..simulation.histories.scenario import Scenario
from ..simulation.histories.shrinking import Shrunk, shrink
from ..simulation.histories.story import tell
from ..simulation.histories.verdict import Verdict, judge, replay
from ..simulation.histories.watchdog import Watchdog
from ..simulation.world.trace import Trace

_SHOWN_VIOLATIONS = 3


def reproducer(scenario: Scenario) -> str:
    """One line for a shell; it works for scenarios that a seed gives."""
    named = "" if standard_history(scenario.seed) == scenario else f" --topology {scenario.topology}"
    return f"python -m understudy simulate --seed {scenario.seed}{named}"


def header(scenario: Scenario) -> str:
    """The first line of a trace that is written to a file."""
    return f"# {scenario!r}"


def tell_history(verdict: Verdict, trace: Trace) -> Iterator[str]:
    """The story of a history, how it ended, and what broke."""
    yield from tell(trace)
    yield ""
    scenario = verdict.scenario
    yield (
        f"seed {scenario.seed} ({scenario.topology}): {verdict.status} after {verdict.virtual_ms / 1000:.1f} s of "
        f"virtual time, {counted(verdict.recoveries, 'recovery')}, {counted(verdict.checkpoints, 'checkpoint')}"
    )
    yield from (f"VIOLATION of {violation}" for violation in verdict.violations[:_SHOWN_VIOLATIONS])
    if len(verdict.violations) > _SHOWN_VIOLATIONS:
        yield f"and {len(verdict.violations) - _SHOWN_VIOLATIONS} more"
    if verdict.traceback:
        yield from verdict.traceback.splitlines()


class Failures:
    """Reports failed histories; the first with each symptom in full, the others in one line."""

    def __init__(self, shrinks: bool) -> None:
        self._shrinks = shrinks
        self._shrunk: dict[str, Shrunk | None] = {}
        self._first_seeds: dict[str, int] = {}

    def is_new(self, verdict: Verdict) -> bool:
        """No other history has failed in this way."""
        return verdict.symptom not in self._first_seeds

    def report(self, verdict: Verdict, trace: Trace | None) -> Iterator[str]:
        """All there is to say about it; `trace` is needed when it is new."""
        assert verdict.broken is not None
        seed = verdict.scenario.seed
        if trace is None or not self.is_new(verdict):
            yield f"seed {seed} fails, as seed {self._first_seeds[verdict.symptom]} does: {verdict.broken}"
            return
        self._first_seeds[verdict.symptom] = seed
        yield f"seed {seed} fails. To see it again: {reproducer(verdict.scenario)}"
        yield ""
        yield from tell_history(verdict, trace)
        if self._shrinks:
            yield from self._tell_shrunk(verdict)

    def _tell_shrunk(self, verdict: Verdict) -> Iterator[str]:
        yield ""
        yield "looking for a smaller scenario that fails in the same way …"
        shrunk = _shrink(verdict)
        self._shrunk[verdict.symptom] = shrunk
        yield f"after {counted(shrunk.runs, 'history')}, this is the smallest:"
        yield ""
        yield from shrunk.scenario.as_python().splitlines()
        yield ""
        with quiet():
            yield from tell_history(*replay(shrunk.scenario))

    def as_json(self, verdict: Verdict) -> dict[str, Any]:
        """`shrunk` is there for the first history with each symptom."""
        assert verdict.broken is not None
        is_first = self._first_seeds.get(verdict.symptom) == verdict.scenario.seed
        shrunk = self._shrunk.get(verdict.symptom) if is_first else None
        return {
            "seed": verdict.scenario.seed,
            "topology": verdict.scenario.topology,
            "oracle": verdict.broken.oracle,
            "problem": verdict.broken.problem,
            "traceback": verdict.traceback,
            "reproducer": reproducer(verdict.scenario),
            "shrunk": shrunk.scenario.as_python() if shrunk else None,
        }


def _shrink(verdict: Verdict) -> Shrunk:
    with quiet(), Watchdog() as watchdog:

        def judged(scenario: Scenario) -> Verdict:
            with watchdog.watching(repr(scenario)):
                return judge(scenario)

        return shrink(verdict, judge=judged)


def campaign_json(plan: Plan, figures: Figures, failures: Failures) -> dict[str, Any]:
    """What `--json` writes."""
    return {
        "version": metadata.version("understudy"),
        "commit": _commit(),
        "first_seed": plan.first_seed,
        "seeds": plan.seeds,
        "minutes": plan.minutes,
        "topologies": list(plan.topologies),
        "processes": plan.processes,
        **figures.as_json(),
        "failing": [failures.as_json(verdict) for verdict in figures.failed],
    }


def _commit() -> str:
    """Of the checkout that this code lies in, with "+" when there are changes on top; "unknown" outside of one."""
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    folder = Path(__file__).resolve().parent
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
