"""What metrics cost the job that reports them: the same job with them and without, in turn, many pairs.

One job runs for each kind, in one slot. Its source switches metrics off and on in its process, slice by slice
(`unmetered.py`), so that both sides have the same processes, memory and neighbours, and each slice is compared with the
two beside it. What counts is processor time per record of all processes: the TaskManager's, and the JobManager's, which
is this one. Three kinds: `columns` (count and sum by key), `records` (a function per record with state), and
`counted`, which is `records` with a counter of the user's that each record increments, and that is left out as well.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from io import FileIO
from typing import Any

import click
import numpy as np
import pyarrow as pa

from understudy import END, Count, KeyedOperator, LocalCluster, Source, StreamEnvironment, Sum, ValueState

from .report import deliver, provenance, shared_options
from .unmetered import Unmetered

WORKLOAD = "metrics"
KINDS = ("columns", "records", "counted")
KEYS = 1_000
BATCH = {"columns": 50_000, "records": 1_000, "counted": 1_000}
"""Rows, a multiple of KEYS."""
COLD_S = 3.0
"""Code and connections are cold at first: this is in no slice."""
WATCHED_EVERY_S = 0.02


class Numbers(Source):
    """0, 1, ... KEYS - 1, and again, in batches; it turns metrics off and on after each `slice_s`, and ends after
    `slices`. `marks`: a file that gets, at each turn, nanoseconds, records until then, and the processor time.
    """

    def __init__(self, kind: str, slices: int, slice_s: float, marks: str) -> None:
        self._kind, self._slices, self._slice_s, self._path = kind, slices, slice_s, marks

    def open(self) -> None:
        self._emitted = self._turns = 0
        self._next_s = time.monotonic() + COLD_S
        self._marks = FileIO(self._path, "w")
        numbers = np.arange(BATCH[self._kind]) % KEYS
        columns = pa.RecordBatch.from_pydict({"key": numbers, "number": numbers})
        self._batch: Any = columns if self._kind == "columns" else numbers.tolist()

    def poll(self) -> Any:
        if time.monotonic() >= self._next_s:
            self._mark()
            if self._turns > self._slices:
                Unmetered.turn(False)
                return END
            self._next_s = time.monotonic() + self._slice_s
        self._emitted += len(self._batch)
        return self._batch

    def _mark(self) -> None:
        moment = time.monotonic_ns(), self._emitted, time.process_time_ns()
        self._marks.write(np.array(moment, "<i8").tobytes())
        self._turns += 1
        Unmetered.turn(self._turns % 2 == 0)

    def offset(self) -> int:
        return self._emitted

    def seek(self, offset: int) -> None:
        raise NotImplementedError("the job takes no checkpoints, and is not restarted")


class Tally(KeyedOperator):
    """How often each key came, at the end."""

    seen = ValueState(int, default=0)

    def process(self, record: int, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, self.seen.value()))


class CountedTally(Tally):
    """With a counter of the user's, which is off where metrics are."""

    def open(self) -> None:
        self._records = self.metrics.counter("records")

    def process(self, record: int, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        if not Unmetered.is_off:
            self._records.inc()


def program(kind: str, source: Numbers) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1)
    stream = env.from_source(source, name="numbers")
    if kind == "columns":
        counts = stream.key_by("key").aggregate(count=Count(), total=Sum("number"))
        counts.map(lambda row: (row["key"], row["count"])).collect(name="counts")
    else:
        operator = Tally() if kind == "records" else CountedTally()
        stream.key_by(lambda number: number).process(operator, name="tally").collect(name="counts")
    return env


class ProcessorTime:
    """Of this process, the JobManager's: moments, and what it had used until then."""

    def __init__(self) -> None:
        self._moments: list[tuple[int, int]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> ProcessorTime:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def until(self, moments_ns: Any) -> Any:
        at, used = np.array(self._moments).T
        return np.interp(moments_ns, at, used)

    def _watch(self) -> None:
        while not self._is_over.wait(WATCHED_EVERY_S):
            self._moments.append((time.monotonic_ns(), time.process_time_ns()))


def shares(ns_per_record: Sequence[float]) -> list[float]:
    """By how many percent each slice with metrics took more than those beside it without. The first has metrics."""
    found = []
    for index in range(2, len(ns_per_record) - 1, 2):
        without = (ns_per_record[index - 1] + ns_per_record[index + 1]) / 2
        found.append(100 * (ns_per_record[index] / without - 1))
    return found


def run(kind: str, slices: int, slice_s: float) -> tuple[list[float], list[str]]:
    """Nanoseconds of processor time per record of each slice, in order."""
    with (
        tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as folder,
        LocalCluster(task_managers=1, slots_per_task_manager=1) as cluster,
        ProcessorTime() as own,
    ):
        marks = f"{folder}/marks"
        job = cluster.submit(program(kind, Numbers(kind, slices, slice_s, marks)), name=WORKLOAD)
        job.wait(timeout=600)
        counts = sorted(tuple(each) for each in job.results("counts"))
        at, records, used = np.fromfile(marks, "<i8").reshape(-1, 3).T
    wanted = [(key, int(records[-1]) // KEYS) for key in range(KEYS)]
    problems = [] if counts == wanted else [f"{kind}: {counts[:3]}... of {len(counts)} keys, wanted {wanted[:3]}..."]
    return (np.diff(used + own.until(at)) / np.diff(records)).tolist(), problems


@click.command(WORKLOAD)
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Comma-separated.")
@click.option(
    "--pairs", default=20, show_default=True, type=click.IntRange(2), help="Slices with metrics, of each job."
)
@click.option("--slice-s", default=1.5, show_default=True, type=click.FloatRange(0.1))
@shared_options
def metrics(kinds: str, pairs: int, slice_s: float, runs: int, json_path: str | None) -> None:
    """What metrics cost a job that reports them."""
    chosen = [kind.strip() for kind in kinds.split(",")]
    if unknown := sorted(set(chosen) - set(KINDS)):
        raise click.BadParameter(f"found {', '.join(unknown)}; wanted some of {', '.join(KINDS)}", param_hint="--kinds")
    report: dict[str, Any] = {"workload": WORKLOAD, "pairs": pairs * runs, "slice_s": slice_s}
    problems: list[str] = []
    for kind in chosen:
        costs: list[float] = []
        bare: list[float] = []
        for _ in range(runs):
            took, wrong = run(kind, 2 * pairs + 2, slice_s)
            costs, bare, problems = costs + shares(took), bare + took[1::2], problems + wrong
        report[kind] = {
            "ns_per_record_without": round(statistics.median(bare), 1),
            **dict(zip(("p25", "median_percent_more", "p75"), map(_rounded, statistics.quantiles(costs)), strict=True)),
        }
    deliver({**report, **provenance()}, problems, json_path)


def _rounded(share: float) -> float:
    return round(share, 2)
