"""How many simulated histories a second one core runs, against another checkout of this package.

Both sides run the same seeds, a few at a time and in turn, each in a process of its own that is warm. What counts is
processor time, and the ratio of the two sides, chunk by chunk. The answer is checked: the traces of all histories are
the same, byte for byte. A traceback in a message tells the numbers of the package's own lines, and its length is part
of what happens; so traces are compared as they are, and with such text left out on both sides: the latter must be the
same.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import click

from .report import ROOT, finish, shared_options

WORKLOAD = "simulator"
CHUNK = 10
"""Seeds that a side runs before it is the other one's turn."""


@dataclass
class Worker:
    """One side's process."""

    to: IO[str]
    answers: IO[str]
    seconds: dict[int, list[float]] = field(default_factory=dict)
    """By the first seed of each chunk."""

    def ask(self, what: str) -> Any:
        print(what, file=self.to, flush=True)
        answer = self.answers.readline()
        if not answer:
            raise click.ClickException("a side has ended; what it said is above")
        return json.loads(answer)

    def run(self, first: int, count: int) -> None:
        self.seconds.setdefault(first, []).append(self.ask(f"{first} {count}"))

    @property
    def median_s(self) -> float:
        """Of all seeds, each chunk counted with its median."""
        return sum(map(statistics.median, self.seconds.values()))


@contextmanager
def working(source: Path, topology: str) -> Iterator[Worker]:
    """A side that imports the package from this folder."""
    command = [sys.executable, str(ROOT / "benchmarks" / "sides" / "simulator.py"), "--topology", topology]
    with subprocess.Popen(
        command, env={"PYTHONPATH": str(source)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Worker(process.stdin, process.stdout)
        process.stdin.close()


def different(ours: dict[str, str], theirs: dict[str, str]) -> list[int]:
    """The seeds whose traces differ."""
    return sorted(int(seed) for seed in ours.keys() | theirs.keys() if ours.get(seed) != theirs.get(seed))


def problems_of(seeds: Sequence[int]) -> list[str]:
    shown = ", ".join(map(str, seeds[:10]))
    return [f"{len(seeds)} traces differ: those of the seeds {shown}{' …' if seeds[10:] else ''}"] if seeds else []


@click.command(WORKLOAD)
@click.option(
    "--against", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="Its src."
)
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(1))
@click.option("--first-seed", default=0, show_default=True)
@click.option(
    "--topology", default="", help="Comma-separated: they take turns. Without it each seed chooses among all."
)
@shared_options
def simulator(against: Path, seeds: int, first_seed: int, topology: str, runs: int, json_path: str | None) -> None:
    """Histories per second of processor time, against another checkout."""
    chunks = [(first, min(CHUNK, first_seed + seeds - first)) for first in range(first_seed, first_seed + seeds, CHUNK)]
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(working(src, topology)) for src in (ROOT / "src", against.resolve()))
        for turn in range(runs):
            for first, count in chunks:
                for side in (ours, theirs) if turn % 2 else (theirs, ours):
                    side.run(first, count)
        differ_outright, differ = (
            different(*(side.ask(f"{what} {first_seed} {seeds}") for side in (ours, theirs)))
            for what in ("traces", "neutral")
        )
    ratios = [
        theirs_s / ours_s
        for first, _ in chunks
        for ours_s, theirs_s in zip(ours.seconds[first], theirs.seconds[first], strict=True)
    ]
    figures = {
        "topology": topology or "all",
        "histories": seeds,
        "runs": runs,
        "histories_per_s": round(seeds / ours.median_s, 2),
        "theirs_per_s": round(seeds / theirs.median_s, 2),
        "ratio": round(theirs.median_s / ours.median_s, 3),
        "median_ratio": round(statistics.median(ratios), 3),
        "same_traces": seeds - len(differ_outright),
        "same_without_tracebacks": seeds - len(differ),
        "checked": not differ,
    }
    finish({"workload": WORKLOAD, "against": str(against)}, figures, problems_of(differ), json_path)
