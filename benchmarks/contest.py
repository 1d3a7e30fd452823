"""A comparison: our side and the peers, in turn, run after run, so that what else the machine does hits all alike.

Each run of each side is a process of its own with an empty folder, its answer is checked, and the report has medians
and the ratio of ours to each peer's.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from .data import Dataset
from .measure import Measured, SideFailed, measure
from .side import Order

Check = Callable[[Order, Measured], list[str]]
"""What is wrong with the answer of one run, and nothing when it is right."""


@dataclass(frozen=True)
class Side:
    """`command` is followed by the order as its last argument. `setting`: how it is set up, for the report."""

    name: str
    command: Sequence[str]
    data: Dataset
    options: dict[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""
    answers: bool = True
    """False for a limit that computes nothing, so that there is nothing to compare."""


@dataclass
class Score:
    """The runs of one side."""

    side: Side
    measured: list[Measured] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def rows_per_s(self) -> list[float]:
        return [self.side.data.rows / one.seconds for one in self.measured]

    @property
    def rows_per_cpu_s(self) -> list[float]:
        """Of the runs whose processor time is known."""
        return [self.side.data.rows / one.cpu_s for one in self.measured if one.cpu_s]

    def report(self) -> dict[str, Any]:
        """The figures of this side; none when no run came to its end."""
        figures: dict[str, Any] = {"rows": self.side.data.rows, "runs": len(self.measured)}
        if self.measured:
            rates = self.rows_per_s
            figures |= {
                "rows_per_s": round(statistics.median(rates)),
                "min_rows_per_s": round(min(rates)),
                "max_rows_per_s": round(max(rates)),
                "seconds": [round(one.seconds, 4) for one in self.measured],
                "wall_s": round(statistics.median(one.wall_s for one in self.measured), 2),
                "peak_rss_mb": round(max(one.peak_rss_mb for one in self.measured)),
                "peak_pss_mb": round(max(one.peak_pss_mb for one in self.measured)),
                **({"rows_per_cpu_s": round(statistics.median(per_cpu))} if (per_cpu := self.rows_per_cpu_s) else {}),
                "said": {
                    key: value for key, value in self.measured[-1].said.items() if key in ("notes", "checkpoints")
                },
            }
        return figures | {
            "checked": bool(self.measured) and self.side.answers and not self.problems,
            "setting": self.side.setting,
            "versions": self.measured[-1].said["versions"] if self.measured else {},
        }


def compete(workload: str, sides: Sequence[Side], runs: int, check: Check) -> list[Score]:
    """All sides, `runs` times; the first side of the turn changes each time. A peer that fails is left out from then
    on, and its score says why; ours may not fail.
    """
    scores = [Score(side) for side in sides]
    for run in range(runs):
        for turn in range(len(scores)):
            score = scores[(run + turn) % len(scores)]
            if not score.problems:
                _run(workload, score, check)
    return scores


def compared(scores: Sequence[Score]) -> dict[str, Any]:
    """The report's figures: those of the first score, with the others under `peers`."""
    ours, *others = scores
    peers = {score.side.name: score.report() | _ratios(ours, score) for score in others}
    return ours.report() | ({"peers": peers} if peers else {})


def problems_of(scores: Sequence[Score]) -> list[str]:
    return [problem for score in scores for problem in score.problems]


def _run(workload: str, score: Score, check: Check) -> None:
    side = score.side
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        order = Order(workload, side.data, Path(name), side.options)
        try:
            measured = measure([*side.command, order.to_argument()], environment=side.environment)
        except SideFailed as error:
            score.problems.append(f"{side.name}: {error}")
            return
        score.measured.append(measured)
        found = check(order, measured) if side.answers else []
        score.problems.extend(f"{side.name}: {problem}" for problem in found)
        verdict = "wrong" if found else "right" if side.answers else "not compared"
        rate, cpu_s = side.data.rows / measured.seconds, measured.cpu_s
        per_cpu = f"  {side.data.rows / cpu_s:>12,.0f} rows/CPU-s" if cpu_s else ""
        memory = f"{measured.peak_rss_mb:>7,.0f} MB"
        click.echo(f"{side.name:>16}  {rate:>14,.0f} rows/s{per_cpu}  {memory}  {verdict}", err=True)


def _ratios(ours: Score, peer: Score) -> dict[str, float]:
    """How many times ours is faster, by the clock and per processor second, and what share of the peer's memory it
    takes.
    """
    if not ours.measured or not peer.measured:
        return {}
    ratios = {
        "ratio": round(statistics.median(ours.rows_per_s) / statistics.median(peer.rows_per_s), 3),
        "memory_ratio": round(_peak(ours) / _peak(peer), 3),
    }
    if (mine := ours.rows_per_cpu_s) and (theirs := peer.rows_per_cpu_s):
        ratios["cpu_ratio"] = round(statistics.median(mine) / statistics.median(theirs), 3)
    return ratios


def _peak(score: Score) -> float:
    return max(one.peak_rss_mb for one in score.measured)
