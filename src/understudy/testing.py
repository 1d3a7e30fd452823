"""What tests of jobs need: the simulator, its faults and assertions, and the harness. See docs/simulation.md.

    from understudy.testing import assert_exactly_once

Names are loaded on first use: to import this module costs nothing, and only to make a strategy needs Hypothesis
(`pip install 'understudy[testing]'`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .runtime.lazy_names import home_of_each, lazy_names

if TYPE_CHECKING:
    from .runtime.oracles import Violation as Violation
    from .runtime.simulation.contracts.sink_contract import SinkContract as SinkContract
    from .runtime.simulation.contracts.source_contract import SourceContract as SourceContract
    from .runtime.simulation.debugging.debug_cluster import DebugCluster as DebugCluster
    from .runtime.simulation.harness.harness import HarnessMisused as HarnessMisused
    from .runtime.simulation.harness.harness import HarnessSnapshot as HarnessSnapshot
    from .runtime.simulation.harness.harness import OperatorHarness as OperatorHarness
    from .runtime.simulation.harness.survival import assert_survives_restore as assert_survives_restore
    from .runtime.simulation.histories.actions import ACTIONS as ACTIONS
    from .runtime.simulation.histories.actions import CancelWithSavepoint as CancelWithSavepoint
    from .runtime.simulation.histories.actions import ClientAction as ClientAction
    from .runtime.simulation.histories.actions import DisposeSavepoint as DisposeSavepoint
    from .runtime.simulation.histories.actions import RestartFromCheckpoint as RestartFromCheckpoint
    from .runtime.simulation.histories.actions import RestartFromDrained as RestartFromDrained
    from .runtime.simulation.histories.actions import RestartFromSavepoint as RestartFromSavepoint
    from .runtime.simulation.histories.actions import StopWithSavepoint as StopWithSavepoint
    from .runtime.simulation.histories.actions import TakeCheckpoint as TakeCheckpoint
    from .runtime.simulation.histories.actions import TakeSavepoint as TakeSavepoint
    from .runtime.simulation.histories.history import Outcome as Outcome
    from .runtime.simulation.histories.history import run_history as run_history
    from .runtime.simulation.histories.scenario import Scenario as Scenario
    from .runtime.simulation.histories.topologies import TOPOLOGIES as TOPOLOGIES
    from .runtime.simulation.histories.topologies import Workload as Workload
    from .runtime.simulation.trials.assertions import Survived as Survived
    from .runtime.simulation.trials.assertions import TrialOptions as TrialOptions
    from .runtime.simulation.trials.assertions import assert_at_least_once as assert_at_least_once
    from .runtime.simulation.trials.assertions import assert_exactly_once as assert_exactly_once
    from .runtime.simulation.trials.job_trial import Unfit as Unfit
    from .runtime.simulation.trials.rescale import Rescale as Rescale
    from .runtime.simulation.trials.strategies import fault_schedules as fault_schedules
    from .runtime.simulation.trials.strategies import faults as faults
    from .runtime.simulation.trials.strategies import scenarios as scenarios
    from .runtime.simulation.trials.strategies import workloads as workloads
    from .runtime.simulation.world.cluster import SimulatedCluster as SimulatedCluster
    from .runtime.simulation.world.cluster import Stalled as Stalled
    from .runtime.simulation.world.disk import SimulatedDisk as SimulatedDisk
    from .runtime.simulation.world.event_loop import NotOnSimulatedLoop as NotOnSimulatedLoop
    from .runtime.simulation.world.fake_service import AnswerLost as AnswerLost
    from .runtime.simulation.world.fake_service import FakeService as FakeService
    from .runtime.simulation.world.fake_service import KeyReused as KeyReused
    from .runtime.simulation.world.fake_service import ServiceError as ServiceError
    from .runtime.simulation.world.faults import FAULTS as FAULTS
    from .runtime.simulation.world.faults import JOB_MANAGER as JOB_MANAGER
    from .runtime.simulation.world.faults import CutConnections as CutConnections
    from .runtime.simulation.world.faults import FailingOperator as FailingOperator
    from .runtime.simulation.world.faults import FailingStorage as FailingStorage
    from .runtime.simulation.world.faults import Fault as Fault
    from .runtime.simulation.world.faults import FreezeProcess as FreezeProcess
    from .runtime.simulation.world.faults import FullDisk as FullDisk
    from .runtime.simulation.world.faults import KillAtCheckpoint as KillAtCheckpoint
    from .runtime.simulation.world.faults import KillAtOperation as KillAtOperation
    from .runtime.simulation.world.faults import KillProcess as KillProcess
    from .runtime.simulation.world.faults import Partition as Partition
    from .runtime.simulation.world.faults import PowerFailure as PowerFailure
    from .runtime.simulation.world.faults import RottenFile as RottenFile
    from .runtime.simulation.world.faults import SkewClock as SkewClock
    from .runtime.simulation.world.faults import SlowFiles as SlowFiles
    from .runtime.simulation.world.faults import SlowLink as SlowLink
    from .runtime.simulation.world.faults import SlowProcess as SlowProcess
    from .runtime.simulation.world.faults import SlowStorage as SlowStorage
    from .runtime.simulation.world.network import NetworkOptions as NetworkOptions
    from .runtime.simulation.world.probes import SimulatedUserError as SimulatedUserError
    from .runtime.simulation.world.transactional_log import TransactionalLog as TransactionalLog
    from .runtime.simulation.world.transactional_log import TransactionError as TransactionError
    from .runtime.simulation.world.world import Stuck as Stuck

_HOMES = {
    "runtime.oracles": "Violation",
    "runtime.simulation.contracts.sink_contract": "SinkContract",
    "runtime.simulation.contracts.source_contract": "SourceContract",
    "runtime.simulation.debugging.debug_cluster": "DebugCluster",
    "runtime.simulation.harness.harness": "HarnessMisused HarnessSnapshot OperatorHarness",
    "runtime.simulation.harness.survival": "assert_survives_restore",
    "runtime.simulation.histories.actions": (
        "ACTIONS CancelWithSavepoint ClientAction DisposeSavepoint RestartFromCheckpoint RestartFromDrained "
        "RestartFromSavepoint StopWithSavepoint TakeCheckpoint TakeSavepoint"
    ),
    "runtime.simulation.histories.history": "Outcome run_history",
    "runtime.simulation.histories.scenario": "Scenario",
    "runtime.simulation.histories.topologies": "TOPOLOGIES Workload",
    "runtime.simulation.trials.assertions": ("Survived TrialOptions assert_at_least_once assert_exactly_once"),
    "runtime.simulation.trials.job_trial": "Unfit",
    "runtime.simulation.trials.rescale": "Rescale",
    "runtime.simulation.trials.strategies": "fault_schedules faults scenarios workloads",
    "runtime.simulation.world.transactional_log": "TransactionError TransactionalLog",
    "runtime.simulation.world.cluster": "SimulatedCluster Stalled",
    "runtime.simulation.world.disk": "SimulatedDisk",
    "runtime.simulation.world.event_loop": "NotOnSimulatedLoop",
    "runtime.simulation.world.fake_service": "AnswerLost FakeService KeyReused ServiceError",
    "runtime.simulation.world.faults": (
        "CutConnections FAULTS FailingOperator FailingStorage Fault FreezeProcess FullDisk JOB_MANAGER "
        "KillAtCheckpoint KillAtOperation KillProcess Partition PowerFailure RottenFile SkewClock SlowFiles SlowLink "
        "SlowProcess SlowStorage"
    ),
    "runtime.simulation.world.network": "NetworkOptions",
    "runtime.simulation.world.probes": "SimulatedUserError",
    "runtime.simulation.world.world": "Stuck",
}

_HOME_OF = home_of_each(_HOMES)

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = lazy_names(__name__, __package__, _HOME_OF)
