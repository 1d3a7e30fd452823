"""The simulator: a whole cluster in one thread, on virtual time, with faults. See docs/simulation.md.

Names are loaded on first use: importing this package costs nothing, and only the strategies need Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..oracles import Violation as Violation
    from .harness.harness import HarnessMisused as HarnessMisused
    from .harness.harness import HarnessSnapshot as HarnessSnapshot
    from .harness.harness import OperatorHarness as OperatorHarness
    from .harness.survival import assert_survives_restore as assert_survives_restore
    from .histories.actions import ACTIONS as ACTIONS
    from .histories.actions import CancelWithSavepoint as CancelWithSavepoint
    from .histories.actions import ClientAction as ClientAction
    from .histories.actions import DisposeSavepoint as DisposeSavepoint
    from .histories.actions import RestartFromCheckpoint as RestartFromCheckpoint
    from .histories.actions import RestartFromSavepoint as RestartFromSavepoint
    from .histories.actions import StopWithSavepoint as StopWithSavepoint
    from .histories.actions import TakeSavepoint as TakeSavepoint
    from .histories.history import Outcome as Outcome
    from .histories.history import run_history as run_history
    from .histories.scenario import Scenario as Scenario
    from .histories.topologies import TOPOLOGIES as TOPOLOGIES
    from .histories.topologies import Workload as Workload
    from .trials.assertions import Survived as Survived
    from .trials.assertions import assert_at_least_once as assert_at_least_once
    from .trials.assertions import assert_exactly_once as assert_exactly_once
    from .trials.job_trial import Unfit as Unfit
    from .trials.rescale import Rescale as Rescale
    from .trials.strategies import fault_schedules as fault_schedules
    from .trials.strategies import scenarios as scenarios
    from .trials.strategies import workloads as workloads
    from .trials.transactional_log import TransactionalLog as TransactionalLog
    from .trials.transactional_log import TransactionError as TransactionError
    from .world.cluster import SimulatedCluster as SimulatedCluster
    from .world.cluster import Stalled as Stalled
    from .world.disk import SimulatedDisk as SimulatedDisk
    from .world.faults import FAULTS as FAULTS
    from .world.faults import JOB_MANAGER as JOB_MANAGER
    from .world.faults import CutConnections as CutConnections
    from .world.faults import FailingOperator as FailingOperator
    from .world.faults import FailingStorage as FailingStorage
    from .world.faults import Fault as Fault
    from .world.faults import FreezeProcess as FreezeProcess
    from .world.faults import FullDisk as FullDisk
    from .world.faults import KillAtOperation as KillAtOperation
    from .world.faults import KillProcess as KillProcess
    from .world.faults import Partition as Partition
    from .world.faults import PowerFailure as PowerFailure
    from .world.faults import RottenFile as RottenFile
    from .world.faults import SkewClock as SkewClock
    from .world.faults import SlowLink as SlowLink
    from .world.faults import SlowProcess as SlowProcess
    from .world.faults import SlowStorage as SlowStorage
    from .world.network import NetworkOptions as NetworkOptions

_HOMES = {
    "trials.assertions": ("Survived", "assert_at_least_once", "assert_exactly_once"),
    "world.cluster": ("SimulatedCluster", "Stalled"),
    "world.disk": ("SimulatedDisk",),
    "world.faults": (
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
        "SlowProcess",
        "SlowStorage",
    ),
    "harness.harness": ("HarnessMisused", "HarnessSnapshot", "OperatorHarness"),
    "histories.actions": (
        "ACTIONS",
        "CancelWithSavepoint",
        "ClientAction",
        "DisposeSavepoint",
        "RestartFromCheckpoint",
        "RestartFromSavepoint",
        "StopWithSavepoint",
        "TakeSavepoint",
    ),
    "histories.history": ("Outcome", "run_history"),
    "trials.job_trial": ("Unfit",),
    "world.network": ("NetworkOptions",),
    "world.oracles": ("Violation",),
    "histories.scenario": ("Scenario",),
    "trials.rescale": ("Rescale",),
    "trials.strategies": ("fault_schedules", "scenarios", "workloads"),
    "harness.survival": ("assert_survives_restore",),
    "histories.topologies": ("TOPOLOGIES", "Workload"),
    "trials.transactional_log": ("TransactionalLog", "TransactionError"),
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
