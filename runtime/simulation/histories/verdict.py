"""Verdict: what is kept of a history once it has been judged. Small, comparable, and able to go from one process to
another; the trace is left behind, since the scenario gives it again.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from typing import Any

from ...oracles import Violation
from ..world.cluster import SimulatedCluster
from ..world.process import ProcessKilled
from ..world.trace import Trace
from .history import Outcome, Watch, run_history
from .scenario import Scenario
from .situations import situations

CRASH = "crash"
"""The oracle that breaks when the simulator itself, or code that it called, raises what nobody caught."""

CRASHED = "CRASHED"
"""The status of such a history."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One history, judged. `faults` and `actions` are (kind, how many) in the order of their names."""

    scenario: Scenario
    status: str
    violations: tuple[Violation, ...] = ()
    virtual_ms: float = 0.0
    faults: tuple[tuple[str, int], ...] = ()
    actions: tuple[tuple[str, int], ...] = ()
    recoveries: int = 0
    checkpoints: int = 0
    traceback: str = ""
    """Of a crash."""
    situations: tuple[str, ...] = ()
    """Those that it has reached, if somebody wants to know, in the order of their names."""

    @property
    def broken(self) -> Violation | None:
        """The first oracle that broke."""
        return self.violations[0] if self.violations else None

    @property
    def symptom(self) -> str:
        """What went wrong, in so far as a smaller scenario must show the same: the oracle, or a crash's exception."""
        match self.broken:
            case None:
                return ""
            case Violation(oracle="crash", problem=problem):
                return f"{CRASH}: {problem.partition(':')[0]}"
            case Violation(oracle=oracle):
                return oracle


def judge(scenario: Scenario, watch: Watch | None = None) -> Verdict:
    """Run it. Whatever it raises is a violation too, and not the end of a campaign."""
    try:
        return verdict_on(run_history(scenario, watch))
    except (Exception, ProcessKilled) as error:  # noqa: BLE001  (the outcome of a history, whatever it is)
        return crashed(scenario, error)


def judge_and_cover(scenario: Scenario) -> Verdict:
    """The same, and which situations were reached."""
    clusters: list[SimulatedCluster] = []
    verdict = judge(scenario, clusters.append)
    reached = situations(clusters[0].trace, clusters[0].probes.moments)
    return replace(verdict, situations=tuple(sorted(reached)))


def replay(scenario: Scenario) -> tuple[Verdict, Trace]:
    """Run it, and keep its trace: of a crash, up to there."""
    clusters: list[SimulatedCluster] = []
    verdict = judge(scenario, clusters.append)
    return verdict, clusters[0].trace


def verdict_on(outcome: Outcome) -> Verdict:
    """What is kept of an outcome."""
    return Verdict(
        outcome.scenario,
        outcome.status,
        outcome.violations,
        outcome.virtual_ms,
        tuple(sorted(outcome.faults.items())),
        tuple(sorted(outcome.actions.items())),
        outcome.recoveries,
        outcome.checkpoints,
    )


def crashed(scenario: Scenario, error: BaseException) -> Verdict:
    """The verdict on a history that did not come to its end."""
    problem = f"{type(error).__name__}: {_first_line(error)}"
    told = "".join(traceback.format_exception(error))
    return Verdict(scenario, CRASHED, (Violation(CRASH, problem),), traceback=told)


def _first_line(error: Any) -> str:
    return (str(error).splitlines() or [""])[0]
