"""Themes of inlets: histories in which what was acknowledged must be found again."""

from __future__ import annotations

from dataclasses import replace

from ..world.faults import Fault, FreezeProcess, PowerFailure
from .inlet_topologies import INLETS
from .scenario import Scenario
from .theme_parts import Chance, kills, moment, with_faults


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
    return with_faults(drawn, *faults)
