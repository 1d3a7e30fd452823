"""The report of a chaos run: as text, and as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...messages.counted import counted
from .injector import Injected


@dataclass
class Report:
    """`exact`: the job has finished, and its committed output is each expected record once. A run is `ok` when nothing
    else was violated either.
    """

    cluster: str
    task_managers: int
    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    """Those carried out, by kind."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Kinds that this machine does not allow, and why."""
    finished: bool = False
    records: int = 0
    exact: bool = False
    restarts: int = 0
    checkpoints_completed: int = 0
    checkpoints_aborted: dict[str, int] = field(default_factory=dict)
    """By why they were."""
    recovery_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """By kind of fault, for those that came on top of another one, and for all: count, median, max. Of faults that cost
    an attempt, the last of each round."""
    reader_looks: int = 0
    files_taken_back: int = 0
    left_behind: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    story: list[dict[str, Any]] = field(default_factory=list)
    """The faults in order."""
    last_events: list[str] = field(default_factory=list)
    """The job's, when something was violated."""
    wall_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.exact and not self.violations and not self.left_behind

    def as_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}

    def add_faults(self, injected: Sequence[Injected]) -> None:
        self.faults = dict(Counter(one.kind for one in injected))
        self.story = [asdict(one) for one in injected]
        alone = [one for one in injected if not one.on_top]
        took = {kind: [one.recovery_ms for one in alone if one.kind == kind] for kind in self.faults}
        took["on-top"] = [one.recovery_ms for one in injected if one.on_top]
        took["all"] = [one.recovery_ms for one in injected]
        self.recovery_ms = {kind: spread for kind, each in took.items() if (spread := _spread(each))}

    def lines(self) -> list[tuple[str, str]]:
        """The outcome as text, each line with its style."""
        faults = ", ".join(f"{count} {kind}" for kind, count in self.faults.items()) or "none"
        lines = [
            (f"faults carried out: {faults}", "bold"),
            *((f"{kind} skipped: {why}", "yellow") for kind, why in self.skipped.items()),
            (f"{counted(self.restarts, 'restart')}, {counted(self.checkpoints_completed, 'checkpoint')} completed", ""),
            *(
                (f"{counted(count, 'checkpoint')} aborted: {why}", "")
                for why, count in self.checkpoints_aborted.items()
            ),
            *(
                (f"recovery from {kind}: median {each['median']:.0f} ms, max {each['max']:.0f} ms", "")
                for kind, each in self.recovery_ms.items()
            ),
            *((f"LEFT BEHIND: {what}", "bold red") for what in self.left_behind),
            *((what, "") for what in self.last_events),
            *((f"VIOLATION: {what}", "bold red") for what in self.violations),
        ]
        verdict = ("exact", "bold green") if self.ok else ("NOT OK", "bold red")
        return [*lines, (f"{verdict[0]}: {self.records:,} records, seed {self.seed}, {self.wall_s:.0f} s", verdict[1])]


def _spread(values: Sequence[int | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    return {"count": len(known), "median": statistics.median(known), "max": max(known)} if known else None
