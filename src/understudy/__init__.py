"""Understudy: a fault-tolerant, stateful stream processing runtime of asyncio actors on Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .actors.actor import Actor as Actor
    from .actors.actor import Terminated as Terminated
    from .actors.errors import CannotRestore as CannotRestore
    from .actors.errors import StateDoesNotFit as StateDoesNotFit
    from .actors.operators import Avg as Avg
    from .actors.operators import Collector as Collector
    from .actors.operators import Count as Count
    from .actors.operators import KeyedOperator as KeyedOperator
    from .actors.operators import Max as Max
    from .actors.operators import Min as Min
    from .actors.operators import Operator as Operator
    from .actors.operators import Source as Source
    from .actors.operators import Sum as Sum
    from .actors.operators import TwoPhaseCommitSink as TwoPhaseCommitSink
    from .messages import JobStatus as JobStatus
    from .messages import Serializer as Serializer
    from .messages import message as message
    from .messages import register_serializer as register_serializer
    from .runtime.api import JobCanceled as JobCanceled
    from .runtime.api import JobFailed as JobFailed
    from .runtime.api import JobHandle as JobHandle
    from .runtime.api import StreamEnvironment as StreamEnvironment
    from .runtime.api import exponential_delay as exponential_delay
    from .runtime.api import failure_rate as failure_rate
    from .runtime.api import fixed_delay as fixed_delay
    from .runtime.api import no_restart as no_restart
    from .runtime.clusters import LocalCluster as LocalCluster
    from .runtime.clusters import RemoteCluster as RemoteCluster
    from .runtime.clusters import SparkCluster as SparkCluster
    from .runtime.connectors import FileSink as FileSink
    from .runtime.system import ActorSystem as ActorSystem
    from .runtime.system import CurveKeys as CurveKeys
    from .state import FoldingState as FoldingState
    from .state import ListState as ListState
    from .state import MapState as MapState
    from .state import OperatorListState as OperatorListState
    from .state import ReducingState as ReducingState
    from .state import ValueState as ValueState

__version__ = "0.1.0"

_HOMES = {
    "actors.actor": ("Actor", "Terminated"),
    "actors.errors": ("CannotRestore", "StateDoesNotFit"),
    "actors.operators": (
        "Avg",
        "Collector",
        "Count",
        "KeyedOperator",
        "Max",
        "Min",
        "Operator",
        "Source",
        "Sum",
        "TwoPhaseCommitSink",
    ),
    "messages": ("JobStatus", "Serializer", "message", "register_serializer"),
    "runtime.api": (
        "JobCanceled",
        "JobFailed",
        "JobHandle",
        "StreamEnvironment",
        "exponential_delay",
        "failure_rate",
        "fixed_delay",
        "no_restart",
    ),
    "runtime.clusters": ("LocalCluster", "RemoteCluster", "SparkCluster"),
    "runtime.connectors": ("FileSink",),
    "runtime.system": ("ActorSystem", "CurveKeys"),
    "state": ("FoldingState", "ListState", "MapState", "OperatorListState", "ReducingState", "ValueState"),
}
"""Where each public name lives. Loaded on first use, so that importing one floor does not import all of them."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
