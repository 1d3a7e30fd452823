"""The simulator: a whole cluster in one thread, on virtual time, with faults. See docs/simulation.md.

Names are loaded on first use: importing this package costs nothing, and only the strategies need Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import Survived as Survived
    from .assertions import assert_at_least_once as assert_at_least_once
    from .assertions import assert_exactly_once as assert_exactly_once
    from .cluster import SimulatedCluster as SimulatedCluster
    from .cluster import Stalled as Stalled
    from .disk import SimulatedDisk as SimulatedDisk
    from .faults import FAULTS as FAULTS
    from .faults import JOB_MANAGER as JOB_MANAGER
    from .faults import CutConnections as CutConnections
    from .faults import FailingOperator as FailingOperator
    from .faults import FailingStorage as FailingStorage
    from .faults import Fault as Fault
    from .faults import FreezeProcess as FreezeProcess
    from .faults import FullDisk as FullDisk
    from .faults import KillAtOperation as KillAtOperation
    from .faults import KillProcess as KillProcess
    from .faults import Partition as Partition
    from .faults import PowerFailure as PowerFailure
    from .faults import RottenFile as RottenFile
    from .faults import SkewClock as SkewClock
    from .faults import SlowLink as SlowLink
    from .faults import SlowStorage as SlowStorage
    from .harness import HarnessMisused as HarnessMisused
    from .harness import HarnessSnapshot as HarnessSnapshot
    from .harness import OperatorHarness as OperatorHarness
    from .history import Outcome as Outcome
    from .history import run_history as run_history
    from .job_trial import Unfit as Unfit
    from .network import NetworkOptions as NetworkOptions
    from .oracles import Violation as Violation
    from .scenario import Scenario as Scenario
    from .strategies import fault_schedules as fault_schedules
    from .strategies import scenarios as scenarios
    from .strategies import workloads as workloads
    from .survival import assert_survives_restore as assert_survives_restore
    from .topologies import TOPOLOGIES as TOPOLOGIES
    from .topologies import Workload as Workload
    from .transactional_log import TransactionalLog as TransactionalLog
    from .transactional_log import TransactionError as TransactionError

_HOMES = {
    "assertions": ("Survived", "assert_at_least_once", "assert_exactly_once"),
    "cluster": ("SimulatedCluster", "Stalled"),
    "disk": ("SimulatedDisk",),
    "faults": (
        "FAULTS",
        "JOB_MANAGER",
        "CutConnections",
        "FailingOperator",
        "FailingStorage",
        "Fault",
        "FreezeProcess",
        "FullDisk",
        "KillAtOperation",
        "KillProcess",
        "Partition",
        "PowerFailure",
        "RottenFile",
        "SkewClock",
        "SlowLink",
        "SlowStorage",
    ),
    "harness": ("HarnessMisused", "HarnessSnapshot", "OperatorHarness"),
    "history": ("Outcome", "run_history"),
    "job_trial": ("Unfit",),
    "network": ("NetworkOptions",),
    "oracles": ("Violation",),
    "scenario": ("Scenario",),
    "strategies": ("fault_schedules", "scenarios", "workloads"),
    "survival": ("assert_survives_restore",),
    "topologies": ("TOPOLOGIES", "Workload"),
    "transactional_log": ("TransactionalLog", "TransactionError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
