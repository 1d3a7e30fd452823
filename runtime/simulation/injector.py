"""Injector: makes the faults of a history happen at their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .disk import SimulatedDisk
from .faults import (
    CutConnections,
    FailingOperator,
    FailingStorage,
    Fault,
    FreezeProcess,
    FullDisk,
    KillAtOperation,
    KillProcess,
    LastingFault,
    Partition,
    PowerFailure,
    RottenFile,
    SkewClock,
    SlowLink,
    SlowStorage,
    Who,
)
from .world import Process

if TYPE_CHECKING:
    from .cluster import SimulatedCluster

Undo = Callable[[], object]


class Injector:
    """Counts what did happen: a fault may find nobody to happen to."""

    def __init__(self, cluster: SimulatedCluster) -> None:
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
        if isinstance(fault, LastingFault):
            self._cluster.world.at(fault.until_ms, None, self._end, fault, undo)

    def _end(self, fault: Fault, undo: Undo) -> None:
        undo()
        self._tell("fault over", fault)

    def _tell(self, what: str, fault: Fault) -> None:
        self._cluster.trace.add("the world", what, fault)

    def _inject(self, fault: Fault) -> Undo | None:
        """Do it; returns what undoes it, or None when it cannot happen now."""
        match fault:
            case KillProcess(who=who):
                return self._to(who, lambda process: process.kill("SIGKILL"))
            case KillAtOperation(who=who, operations=operations):
                return self._to(who, lambda process: process.die_after(operations))
            case SkewClock(who=who, by_ms=by_ms):
                return self._to(who, lambda process: process.clock.skew(by_ms))
            case FreezeProcess(who=who):
                return self._freeze(who)
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

    def _freeze(self, who: Who) -> Undo | None:
        process = self._cluster.process(who)
        if process is None or not process.is_alive or process.is_frozen:
            return None
        process.freeze()
        self._cluster.network.froze(process)
        return process.thaw

    def _disturb(self, fault: Fault, one: Process | None, other: Process | None) -> Undo | None:
        """Something happens to what is between two processes."""
        if one is None or other is None or one is other:
            return None
        network = self._cluster.network
        match fault:
            case CutConnections():
                return _nothing if network.cut(one.name, other.name) else None
            case Partition(one_way=one_way):
                pairs = [(one.name, other.name), *([] if one_way else [(other.name, one.name)])]
                for source, target in pairs:
                    network.block(source, target)

                def heal() -> None:
                    for source, target in pairs:
                        network.unblock(source, target)

                return heal
            case SlowLink(extra_latency_ms=extra_ms, bytes_per_ms=bytes_per_ms):
                return network.slow(one.name, other.name, extra_ms, bytes_per_ms)
        raise AssertionError(fault)

    def _spoil(self, fault: Fault) -> Undo | None:
        """Something happens to the storage."""
        cluster = self._cluster
        match fault:
            case FailingStorage(probability=probability):
                return _raised(cluster.storage, "failing", probability)
            case SlowStorage(extra_ms=extra_ms):
                return _raised(cluster.storage, "extra_ms", extra_ms)
            case FullDisk():
                return _fill(cluster.disk)
            case RottenFile():
                return self._rot()
            case PowerFailure():
                for index in range(cluster.settings.task_managers):
                    self._to(index, lambda process: process.kill("the power failed"))
                cluster.disk.crash(cluster.world.chance(f"power failure at {cluster.now_ms}"))
                return _nothing
        raise AssertionError(fault)

    def _rot(self) -> Undo | None:
        newest = self._cluster.newest_checkpoint_file()
        if newest is None:
            return None
        self._cluster.disk.rot(newest, 3)
        return _nothing


def _nothing() -> None:
    """A fault that is not undone."""


def _fill(disk: SimulatedDisk) -> Undo:
    """Take all the room that is left, and give it back when it is undone."""
    taken = disk.capacity_bytes - disk.used_bytes if disk.capacity_bytes is not None else 0
    disk.used_bytes += taken

    def empty() -> None:
        disk.used_bytes -= taken

    return empty


def _raised(target: Any, name: str, by: float) -> Undo:
    """Add to a number, until it is undone."""
    setattr(target, name, getattr(target, name) + by)
    return lambda: setattr(target, name, getattr(target, name) - by)
