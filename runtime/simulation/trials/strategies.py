"""Strategies: faults, workloads and whole scenarios for Hypothesis. Needs `pip install hypothesis`.

    @given(faults=fault_schedules(task_managers=2, within_ms=20_000), seed=st.integers(0, 1000))
    def test_it_survives(faults, seed):
        with SimulatedCluster(task_managers=2, seed=seed, faults=faults) as cluster: ...

What fails shrinks to few faults, simple ones, short and early: kinds stand in the order of their simplicity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, get_args

from ..histories.scenario import Scenario
from ..histories.topologies import TOPOLOGIES, Workload
from ..world.faults import (
    JOB_MANAGER,
    CheckpointMoment,
    CutConnections,
    FailingOperator,
    FailingStorage,
    Fault,
    FreezeProcess,
    FullDisk,
    KillAtCheckpoint,
    KillAtOperation,
    KillProcess,
    Partition,
    PowerFailure,
    RottenFile,
    SkewClock,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
    SyncedFolder,
)

if TYPE_CHECKING:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
else:

    class _Hypothesis:
        """Its strategies, imported when the first is made: who has not installed it can import this module."""

        def __getattr__(self, name: str) -> Any:
            try:
                from hypothesis import strategies
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(
                    "faults, fault_schedules, scenarios and workloads need Hypothesis: "
                    "pip install 'understudy[testing]'",
                    name=error.name,
                ) from error
            return getattr(strategies, name)

    st = _Hypothesis()

Kinds = Iterable[type[Fault]]

_LONGEST_MS = 15_000
_MOST_OPERATIONS = 60
_MOST_OPERATORS = 4

ALL_KINDS: tuple[type[Fault], ...] = (
    KillProcess,
    FailingOperator,
    CutConnections,
    KillAtOperation,
    KillAtCheckpoint,
    PowerFailure,
    FreezeProcess,
    Partition,
    RottenFile,
    FailingStorage,
    FullDisk,
    SlowStorage,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SkewClock,
)
"""Every kind, the simplest first."""


def fault_schedules(
    task_managers: int = 2,
    within_ms: float = 20_000,
    kinds: Kinds = ALL_KINDS,
    max_faults: int = 6,
) -> SearchStrategy[tuple[Fault, ...]]:
    """Up to `max_faults` faults of these kinds that begin within this time, in the order of their times.

    TaskManagers are killed, and the JobManager at most frozen or cut off: its death is the end of its jobs.
    """
    return st.lists(faults(task_managers, within_ms, kinds), max_size=max_faults).map(
        lambda found: tuple(sorted(found, key=lambda fault: fault.at_ms))
    )


def faults(task_managers: int = 2, within_ms: float = 20_000, kinds: Kinds = ALL_KINDS) -> SearchStrategy[Fault]:
    """One fault of these kinds."""
    wanted = set(kinds)
    if unknown := wanted - set(ALL_KINDS):
        raise ValueError(f"kinds: wanted some of strategies.ALL_KINDS, found {', '.join(map(repr, unknown))}")
    makers = _makers(task_managers, within_ms)
    return st.one_of([makers[kind] for kind in ALL_KINDS if kind in wanted])


def _makers(task_managers: int, within_ms: float) -> dict[type[Fault], SearchStrategy[Any]]:
    at_ms = _milliseconds(0, within_ms)
    for_ms = _milliseconds(1, _LONGEST_MS)
    task_manager = st.integers(0, task_managers - 1)
    anybody = st.one_of(task_manager, st.just(JOB_MANAGER))
    two = st.lists(anybody, min_size=2, max_size=2, unique=True)
    return {
        KillProcess: st.builds(KillProcess, at_ms, task_manager),
        KillAtOperation: st.builds(KillAtOperation, at_ms, task_manager, st.integers(1, _MOST_OPERATIONS)),
        KillAtCheckpoint: st.builds(
            KillAtCheckpoint, at_ms, st.sampled_from(get_args(CheckpointMoment)), st.integers(0, _MOST_OPERATORS)
        ),
        FreezeProcess: st.builds(FreezeProcess, at_ms, for_ms, anybody, st.integers(0, _MOST_OPERATIONS)),
        CutConnections: st.builds(_between(CutConnections), two, at_ms),
        Partition: st.builds(_between(Partition), two, at_ms, for_ms, one_way=st.booleans()),
        SlowLink: st.builds(_between(SlowLink), two, at_ms, for_ms, extra_latency_ms=_milliseconds(1, 2_000)),
        SlowProcess: st.builds(SlowProcess, at_ms, for_ms, task_manager, _milliseconds(1, 2_000)),
        FailingStorage: st.builds(FailingStorage, at_ms, for_ms, st.sampled_from((1.0, 0.3, 0.05))),
        SlowStorage: st.builds(SlowStorage, at_ms, for_ms, _milliseconds(1, 5_000)),
        SlowFiles: st.builds(SlowFiles, at_ms, for_ms, anybody, _milliseconds(1, 5_000)),
        FullDisk: st.builds(FullDisk, at_ms, for_ms),
        RottenFile: st.builds(RottenFile, at_ms, flips=st.booleans()),
        PowerFailure: st.builds(PowerFailure, at_ms, st.sampled_from((None, "metadata", *get_args(SyncedFolder)))),
        SkewClock: st.builds(SkewClock, at_ms, anybody, st.integers(-3_600_000, 3_600_000)),
        FailingOperator: st.builds(
            FailingOperator, at_ms, st.sampled_from(("process_batch", "on_checkpoint", "commit", "open"))
        ),
    }


def _milliseconds(least: float, most: float) -> SearchStrategy[float]:
    """Whole ones: they shrink best, and chance in the history makes up for the rest."""
    return st.integers(int(least), max(int(least), int(most))).map(float)


def _between(kind: Callable[..., Fault]) -> Callable[..., Fault]:
    def between(two: list[int], *times: float, **rest: Any) -> Fault:
        return kind(*times, one=two[0], other=two[1], **rest)

    return between


def workloads() -> SearchStrategy[Workload]:
    """Small ones; for the topologies of this package."""
    return st.builds(
        Workload,
        records=st.integers(4, 50),
        keys=st.integers(1, 6),
        parallelism=st.integers(1, 2),
        records_per_second=st.sampled_from((1.0, 2.0, 5.0)),
        checkpoint_interval_ms=st.sampled_from((1_000, 2_000, 4_000)),
        retained_checkpoints=st.integers(1, 3),
        max_concurrent_checkpoints=st.integers(1, 2),
    )


def topologies() -> SearchStrategy[str]:
    """Names of TOPOLOGIES."""
    return st.sampled_from(tuple(TOPOLOGIES))


def scenarios(kinds: Kinds = ALL_KINDS, max_faults: int = 6) -> SearchStrategy[Scenario]:
    """Whole histories, for `run_history`."""
    return st.composite(_scenario)(kinds, max_faults)


def _scenario(draw: st.DrawFn, kinds: Kinds, max_faults: int) -> Scenario:
    workload = draw(workloads())
    task_managers = draw(st.integers(1, 2))
    return Scenario(
        seed=draw(st.integers(0, 1_000_000)),
        topology=draw(topologies()),
        workload=workload,
        task_managers=task_managers,
        slots=-(-workload.parallelism // task_managers),
        faults=draw(fault_schedules(task_managers, workload.duration_ms, kinds, max_faults)),
    )
