"""What it costs a job to be looked at: sampled for back-pressure and flame graphs, or watched on the page and scraped.

One job runs, and in slices of five seconds it is sampled, watched, or left alone, in turn. Each slice is compared with
the ones beside it in which nobody looked. What counts is the processor time of the TaskManager's process per record,
which a busy machine changes less than records per second.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from io import FileIO
from typing import Any

import click
import httpx
import numpy as np

from understudy import JobHandle, KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.messages import SlotIndex
from understudy.runtime.metrics.slot_stacks import SlotStacks

from .report import deliver, provenance, shared_options, spread

WORKLOAD = "watching"
KEYS = 1_000
SLICE_S = 5.5
"""A hundred samples take five seconds."""
STAGES = ("first", "second", "third")
"""Each vertex is sampled once in a minute at most, so there are several, which share a thread."""
WATCHED_EVERY_S = 1.0
LOOKS = 2_000
LOOKS_A_SECOND = 20
STACK = 40
"""Frames."""
MARK_EVERY = 2_000
"""So often the first stage writes down how far it is, and what its process has used until then."""


class CountKey(KeyedOperator):
    """The number of a key's records, and the record handed on; the last record of each key says how many there were.

    `marks`: a file that gets moments: nanoseconds, records until then, and the process's processor time.
    """

    seen = ValueState(int, default=0)

    def __init__(self, last_from: int | None, marks: str | None) -> None:
        self._last_from = last_from
        self._path = marks

    def open(self) -> None:
        self._records = self.metrics.counter("records")
        self._count = 0
        self._marks: FileIO | None = None if self._path is None else FileIO(self._path, "w")

    def process(self, record: int, out: Any) -> None:
        seen = self.seen.value() + 1
        self.seen.update(seen)
        self._records.inc()
        if self._marks is not None:
            self._count += 1
            if self._count % MARK_EVERY == 0:
                moment = time.monotonic_ns(), self._count, time.process_time_ns()
                self._marks.write(np.array(moment, "<i8").tobytes())
        if self._last_from is None:
            out.collect(record)
        elif record >= self._last_from:
            out.collect((self.key, seen))


def program(rows: int, marks: str) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1)
    stream = env.generate(lambda index: index, rows, name="numbers")
    for name in STAGES:
        last_from = rows - KEYS if name == STAGES[-1] else None
        stream = stream.key_by(lambda number: number % KEYS).process(
            CountKey(last_from, marks if name == STAGES[0] else None), name=name
        )
    stream.collect(name="counts")
    return env


@dataclass(frozen=True, slots=True)
class Slice:
    """`cpu_us`: processor time of the TaskManager's process for a record of the source."""

    what: str
    cpu_us: float
    records_per_s: float


def _sampled(job: JobHandle, vertex: str) -> AbstractContextManager[Any]:
    """100 samples of it are taken meanwhile."""
    assert not job.back_pressure(vertex, wait=False).level, f"{vertex} has been sampled already"
    return nullcontext()


class _Watched(AbstractContextManager[None]):
    """The page is open, and somebody asks for all figures each second, as Prometheus does."""

    def __init__(self, url: str, job: JobHandle) -> None:
        self._url, self._job = url, job
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._page, self._figures)]

    def __enter__(self) -> None:
        for each in self._threads:
            each.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    def _page(self) -> None:
        with httpx.stream("GET", f"{self._url}live", params={"job": self._job.job_id}, timeout=30) as stream:
            for _ in stream.iter_raw():
                if self._is_over.is_set():
                    return

    def _figures(self) -> None:
        while not self._is_over.wait(WATCHED_EVERY_S):
            self._job.metrics()


def run(rows: int) -> tuple[list[Slice], list[str]]:
    """One job, and its slices in order; those that its end has cut short are left out."""
    with (
        tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as folder,
        LocalCluster(task_managers=1, slots_per_task_manager=1, web_port=0) as cluster,
    ):
        marks = f"{folder}/marks"
        job = cluster.submit(program(rows, marks), name=WORKLOAD)
        job.ready().result(timeout=60)
        time.sleep(3)  # code and connections are cold at first
        assert cluster.web_url is not None
        looked = _look(job, cluster.web_url)
        job.wait(timeout=600)
        counts = job.results("counts")
        moments = np.fromfile(marks, "<i8").reshape(-1, 3)
    wanted = [(key, rows // KEYS) for key in range(KEYS)]
    problems = (
        [] if sorted(counts) == wanted else [f"{len(counts)} counts, and not {rows // KEYS} of each of {KEYS} keys"]
    )
    return [slice_of(what, moments, *times) for what, *times in looked if times[1] < moments[-1, 0]], problems


def _look(job: JobHandle, url: str) -> list[tuple[str, int, int]]:
    """What was done, from when to when."""
    looks: list[tuple[str, Callable[[], AbstractContextManager[Any]]]] = []
    for vertex in STAGES:
        looks += [("alone", nullcontext), ("sampled", partial(_sampled, job, vertex))]
        looks += [("alone", nullcontext), ("watched", lambda: _Watched(url, job))]
    found: list[tuple[str, int, int]] = []
    for what, look in [*looks, ("alone", nullcontext)]:
        if job.status.is_terminal:
            break
        with look():
            began_ns = time.monotonic_ns()
            time.sleep(SLICE_S)
            found.append((what, began_ns, time.monotonic_ns()))
    return found


def slice_of(what: str, moments: Any, began_ns: int, ended_ns: int) -> Slice:
    at = moments[:, 0]
    records = np.diff(np.interp([began_ns, ended_ns], at, moments[:, 1]))[0]
    cpu_ns = np.diff(np.interp([began_ns, ended_ns], at, moments[:, 2]))[0]
    return Slice(what, float(cpu_ns / records / 1e3), float(records / (ended_ns - began_ns) * 1e9))


def look_us() -> float:
    """Processor time of one look at a slot's thread: the median of many, at a stack as deep as an operator's.

    A task is looked at every 50 ms, and meanwhile runs no Python: so this, 20 times a second, is what a sample takes.
    """
    is_over, is_deep = threading.Event(), threading.Event()

    def deep(calls: int) -> None:
        if calls:
            deep(calls - 1)
        else:
            is_deep.set()
            is_over.wait()

    thread = threading.Thread(target=deep, args=(STACK,), name="stepping slot-0")
    thread.start()
    try:
        is_deep.wait()
        stacks, took = SlotStacks(), []
        for _ in range(LOOKS):
            began = time.thread_time_ns()
            found = stacks.of(SlotIndex(0), STACK)
            took.append(time.thread_time_ns() - began)
            assert len(found) == STACK
        return statistics.median(took) / 1e3
    finally:
        is_over.set()
        thread.join()


def shares(slices: Sequence[Slice], what: str) -> list[float]:
    """By how many percent a record took more processor time than in the slices before and after, when nobody looked."""
    found = []
    for before, one, after in zip(slices, slices[1:], slices[2:], strict=False):
        if one.what == what:
            alone = (before.cpu_us + after.cpu_us) / 2
            found.append(100 * (one.cpu_us / alone - 1))
    return found


@click.command(WORKLOAD)
@click.option("--rows", default=12_000_000, show_default=True, type=click.IntRange(KEYS * 10))
@shared_options
def watching(rows: int, runs: int, json_path: str | None) -> None:
    """What it costs a job to be sampled, and to be watched."""
    rows -= rows % KEYS
    slices: list[list[Slice]] = []
    problems: list[str] = []
    for _ in range(runs):
        found, wrong = run(rows)
        slices.append(found)
        problems += wrong
    sampled = [share for each in slices for share in shares(each, "sampled")]
    watched = [share for each in slices for share in shares(each, "watched")]
    if not sampled or not watched:
        problems.append("the job ended before it was sampled and watched: take more --rows")
    alone = [each.cpu_us for one in slices for each in one if each.what == "alone"]
    one_look_us = look_us()
    rates = [each.records_per_s for one in slices for each in one if each.what == "alone"]
    report = {
        "workload": WORKLOAD,
        "rows": rows,
        "slices": len(alone) + len(sampled) + len(watched),
        "rows_per_s": round(statistics.median(rates)) if rates else None,
        **spread("cpu_us_per_row", alone),
        "look_us": round(one_look_us, 1),
        "looks_percent_of_a_thread": round(LOOKS_A_SECOND * one_look_us / 1e4, 3),
        "sampled_slices": len(sampled),
        "watched_slices": len(watched),
        **spread("sampled_percent_more", sampled),
        **spread("watched_percent_more", watched),
    }
    deliver({**report, **provenance()}, problems, json_path)
