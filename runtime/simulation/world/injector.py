"""Injector: makes the faults of a history happen at their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .disk import SimulatedDisk
from .faults import (
    JOB_MANAGER,
    CutConnections,
    FailingOperator,
    FailingStorage,
    Fault,
    FreezeProcess,
    FullDisk,
    KillAtCheckpoint,
    KillAtOperation,
    KillProcess,
    LastingFault,
    Partition,
    PowerFailure,
    RottenFile,
    SkewClock,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
    Who,
)
from .network import Network
from .probes import Probes
from .storage_conditions import StorageConditions
from .world import Process, World

Undo = Callable[[], object]


class Stage(Protocol):
    """The cluster, as faults meet it."""

    world: World
    network: Network
    storage: StorageConditions
    disk: SimulatedDisk
    probes: Probes

    def process(self, who: Who) -> Process | None:
        """The process that is this TaskManager, or the JobManager, now."""
        ...

    def processes(self) -> Iterable[Process]:
        """Those that live."""
        ...

    def newest_checkpoint_file(self, which: int = 0) -> str | None: ...


class Injector:
    """Counts what did happen: a fault may find nobody to happen to."""

    def __init__(self, cluster: Stage) -> None:
        self._cluster = cluster
        self.happened: Counter[str] = Counter()

    def arm(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._cluster.world.at(fault.at_ms, None, self._begin, fault)

    def _begin(self, fault: Fault) -> None:
        undo = self._inject(fault)
        if undo is None:
            return
        self.happened[type(fault).__name__] += 1
        self._tell("fault", fault)
        if isinstance(fault, LastingFault) and undo is not _nothing:
            self._cluster.world.at(fault.until_ms, None, self._end, fault, undo)

    def _end(self, fault: Fault, undo: Undo) -> None:
        undo()
        self._tell("fault over", fault)

    def _tell(self, what: str, fault: Fault) -> None:
        self._cluster.world.trace.add("the world", what, fault)

    def _inject(self, fault: Fault) -> Undo | None:
        """Do it; returns what undoes it, or None when it cannot happen now."""
        match fault:
            case KillProcess(who=who):
                return self._to(who, lambda process: process.kill("SIGKILL"))
            case KillAtOperation(who=who, operations=operations):
                return self._to(who, lambda process: process.die_after(operations))
            case KillAtCheckpoint(moment=moment, which=which):
                self._cluster.probes.deaths.await_moment(moment, which)
                return _nothing
            case SkewClock(who=who, by_ms=by_ms):
                return self._to(who, lambda process: process.clock.skew(by_ms))
            case FreezeProcess():
                return self._freeze(fault)
            case SlowProcess(who=who, extra_ms=extra_ms):
                return self._slow_down(who, extra_ms, lambda process: process.slow_steps_ms)
            case SlowFiles(who=who, extra_ms=extra_ms):
                return self._slow_down(who, extra_ms, lambda process: process.slow_files_ms)
            case (
                CutConnections(one=one, other=other) | Partition(one=one, other=other) | SlowLink(one=one, other=other)
            ):
                return self._disturb(fault, self._cluster.process(one), self._cluster.process(other))
            case FailingOperator(call=call):
                self._cluster.probes.fail_next(call)
                return _nothing
            case _:
                return self._spoil(fault)

    def _to(self, who: Who, happen: Callable[[Process], Any]) -> Undo | None:
        process = self._cluster.process(who)
        if process is None or not process.is_alive:
            return None
        happen(process)
        return _nothing

    def _freeze(self, fault: FreezeProcess) -> Undo | None:
        process = self._cluster.process(fault.who)
        if process is None or not process.is_alive or process.is_stopped:
            return None
        if fault.operations:
            process.freeze_after(fault.operations, fault.for_ms)
            return _nothing
        process.freeze()
        return process.thaw

    def _slow_down(self, who: Who, extra_ms: float, what: Callable[[Process], list[float]]) -> Undo | None:
        process = self._cluster.process(who)
        return None if process is None or not process.is_alive else _added(what(process), extra_ms)

    def _disturb(self, fault: Fault, one: Process | None, other: Process | None) -> Undo | None:
        """Something happens to what is between two processes."""
        if one is None or other is None or one.host == other.host:
            return None
        network = self._cluster.network
        match fault:
            case CutConnections():
                return _nothing if network.cut(one, other) else None
            case Partition(one_way=one_way):
                pairs = [(one.host, other.host), *([] if one_way else [(other.host, one.host)])]
                for source, target in pairs:
                    network.block(source, target)

                def heal() -> None:
                    for source, target in pairs:
                        network.unblock(source, target)

                return heal
            case SlowLink(extra_latency_ms=extra_ms, bytes_per_ms=bytes_per_ms):
                return network.slow(one.host, other.host, extra_ms, bytes_per_ms)
        raise AssertionError(fault)

    def _spoil(self, fault: Fault) -> Undo | None:
        """Something happens to the storage."""
        cluster = self._cluster
        match fault:
            case FailingStorage(probability=probability):
                return _added(cluster.storage.failures, probability)
            case SlowStorage(extra_ms=extra_ms):
                return _added(cluster.storage.slowdowns_ms, extra_ms)
            case FullDisk():
                return _added(cluster.storage.full, 1.0)
            case RottenFile():
                return self._rot(fault)
            case PowerFailure(after_sync=None):
                return self._fail_the_power()
            case PowerFailure(after_sync=moment) if moment is not None:
                self._cluster.storage.power.fail_after(moment, self._fail_the_power, self._survivor)
                return _nothing
        raise AssertionError(fault)

    def _fail_the_power(self) -> Undo | None:
        """Not while the JobManager, which survives it, is in the middle of a write, to be lost behind its back."""
        cluster, survivor = self._cluster, self._survivor()
        if survivor is not None and survivor in cluster.world.interrupted:
            return None
        for process in list(cluster.processes()):
            if process is not survivor:
                process.kill("the power failed")
        cluster.disk.crash(cluster.world.chance(f"power failure at {cluster.world.now_ms}"))
        return _nothing

    def _survivor(self) -> Process | None:
        return self._cluster.process(JOB_MANAGER)

    def _rot(self, fault: RottenFile) -> Undo | None:
        newest = self._cluster.newest_checkpoint_file(fault.which)
        if newest is None:
            return None
        if fault.flips:
            self._cluster.disk.flip_a_bit(newest, self._cluster.world.chance(f"bit flipped at {fault.at_ms}"))
        else:
            self._cluster.disk.rot(newest, 3)
        return _nothing


def _nothing() -> None:
    """A fault that is not undone."""


def _added(numbers: list[float], number: float) -> Undo:
    """Put a number among those that hold just now, until it is undone."""
    numbers.append(number)
    return lambda: numbers.remove(number)
