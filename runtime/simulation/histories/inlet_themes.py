"""Themes of inlets: histories in which what was acknowledged must be found again."""

from __future__ import annotations

from dataclasses import replace

from ..world.faults import Fault, FreezeProcess, KillProcess, PowerFailure, RottenFile
from .inlet_topologies import INLETS
from .scenario import Scenario
from .theme_parts import Chance, kills, moment, paced, with_faults


def sent_in(chance: Chance, scenario: Scenario) -> Scenario:
    """Records are sent into the job, to which anything happens; often a TaskManager dies, or the power fails."""
    drawn = replace(scenario, topology=chance.choice(sorted(INLETS)))
    drawn = replace(drawn, workload=replace(drawn.workload, checkpoint_interval_ms=chance.choice((1_000, 3_000))))
    faults: list[Fault] = []
    if chance.random() < 0.6:
        faults += kills(chance, drawn, 0.2, 1.0, times=chance.choice((1, 2)))
    if chance.random() < 0.4:
        faults.append(PowerFailure(moment(chance, drawn, 0.2, 0.9)))
    if chance.random() < 0.3:
        who = chance.randrange(drawn.task_managers)
        faults.append(FreezeProcess(moment(chance, drawn, 0.2, 0.8), 9_000.0, who, operations=chance.choice((0, 3))))
    return _rotten(chance, drawn) if chance.random() < 0.3 else with_faults(drawn, *faults)


def _rotten(chance: Chance, scenario: Scenario) -> Scenario:
    """The two newest checkpoints cannot be read, so the log is read again from the one before them. Two, because the
    segment behind the last but one is needed by the newest one, too.
    """
    drawn = paced(chance, scenario, records_per_second=2.7, checkpoint_interval_ms=1_000, retained_checkpoints=3)
    drawn = replace(drawn, faults=(), actions=())
    at_ms = moment(chance, drawn, 0.3, 0.9)
    rots = [RottenFile(round(at_ms + later_ms, 1), which=chance.randrange(4)) for later_ms in (0, 1_000)]
    killed = KillProcess(round(at_ms + 1_000 + chance.uniform(1, 150), 1), chance.randrange(2))
    return with_faults(drawn, *rots, killed)
