"""FakeLedger: an outside system with one atomic act, on a bad day: what a LedgerSink writes to. One per name and world.

An act writes rows and moves a marker, or does neither. Some are refused; of some the answer is lost after the effect;
and some are late: whoever asked has been given an error, and dies perhaps, before they take effect. It outlives every
process and restart of its world. The process that asks may be killed before it has sent the request, and before it has
the answer. Chance goes by the world's seed. For synchronous code; `FakeService` is for coroutines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from .disk import SimulatedDisk
from .file_system import current_disk
from .process import Process

REFUSED, LOST, LATE = 0.06, 0.06, 0.06
"""Shares of the acts."""
LATE_MS = (50.0, 9_000.0)


class LedgerAway(ConnectionError):
    """No answer. The act may have had its effect, or have it yet."""


class NotThere(RuntimeError):
    """The marker does not stand where the act wants it: nothing was written."""


@dataclass(slots=True)
class LedgerContents:
    """What it holds, and what its users have noted there."""

    rows: list[Any] = field(default_factory=list)
    markers: dict[str, int] = field(default_factory=dict)
    notes: list[Any] = field(default_factory=list)
    acts: int = 0

    def act(self, writer: str, after: int, sequence: int, rows: Sequence[Any]) -> None:
        found = self.markers.get(writer, 0)
        if found != after:
            raise NotThere(f"marker {writer!r}: wanted {after}, found {found}")
        self.rows.extend(rows)
        self.markers[writer] = sequence

    def act_late(self, writer: str, after: int, sequence: int, rows: Sequence[Any]) -> None:
        try:
            self.act(writer, after, sequence, rows)
        except NotThere:
            return


_worlds: WeakKeyDictionary[SimulatedDisk, dict[str, LedgerContents]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class FakeLedger:
    """The ledger of this name in the world that is current. Raises RuntimeError outside of all worlds."""

    name: str = "ledger"

    @property
    def contents(self) -> LedgerContents:
        return _worlds.setdefault(current_disk(), {}).setdefault(self.name, LedgerContents())

    def act(self, writer: str, after: int, sequence: int, rows: Sequence[Any]) -> None:
        """Raises LedgerAway and NotThere."""
        contents, process = self.contents, self._operate("is asked to move", writer, after, sequence)
        contents.acts += 1
        drawn = process.world.chance(f"{self.name}/{contents.acts}")
        fate = drawn.random()
        if fate < REFUSED:
            raise LedgerAway(f"{self.name}: refused")
        if fate < REFUSED + LATE:
            process.world.after(drawn.uniform(*LATE_MS), None, contents.act_late, writer, after, sequence, list(rows))
            raise LedgerAway(f"{self.name}: no answer in time")
        contents.act(writer, after, sequence, rows)
        self._operate("has moved", writer, after, sequence)
        if fate < REFUSED + LATE + LOST:
            raise LedgerAway(f"{self.name}: the connection broke")

    def read(self, writer: str) -> int | None:
        self._operate("is asked for", writer)
        return self.contents.markers.get(writer)

    def _operate(self, does: str, *what: Any) -> Process:
        process = current_disk().owner()
        assert isinstance(process, Process), "only simulated processes ask"
        process.operate()
        process.world.trace.add(process.name, "service", f"{self.name} {does}", *what)
        return process
