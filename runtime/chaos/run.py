"""One chaos run: a job on real processes, faults one after the other, and the verdict on what it committed and left."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...state.root_mark import MARK
from ..clusters.job_errors import JobFailed
from ..clusters.job_handle import JobHandle
from ..oracles import Violation, exactly_once, nothing_extra
from .faults import Counts, Disk, Pace, plan
from .injector import LIVENESS_S, Injector, Say
from .leftovers import Marked, everything_below, hidden_files, marked
from .observer import Observer
from .output_reader import OutputReader, visible_files
from .proxied_cluster import ProxiedCluster
from .report import Report
from .small_disk import CannotMount, SmallDisk, small_disk
from .workload import EndFile, build, expected, read_file

OpenCluster = Callable[[Path, int], AbstractContextManager[ProxiedCluster]]
"""A started cluster with this number of TaskManagers per job, that may keep files in the folder until it is closed."""

MIB = 1024 * 1024
DISK_BYTES, DISK_BYTES_PER_FAULT = 64 * MIB, 1 * MIB
"""A small disk must hold the whole run's output, which is as long as there are faults."""
END_MARGIN_S = 3.0
"""The sources get an end this far beyond what they may have emitted: time for each of them to read it."""
CLOSING_S = 15.0


@dataclass(frozen=True)
class Options:
    counts: Counts
    seed: int
    cluster: str = "local"
    task_managers: int = 2
    records_per_second: float = 1_000.0
    checkpoint_interval_ms: int = 100
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class Stage:
    """Where the files of a run are."""

    folder: Path
    checkpoints: Path
    output: Path
    disks: dict[Disk, SmallDisk]


def run(options: Options, open_cluster: OpenCluster, say: Say = lambda _what, _style: None) -> Report:
    """Run, inject faults and judge; all problems are in the report."""
    started = time.monotonic()
    report = Report(options.cluster, options.task_managers, options.seed)
    with tempfile.TemporaryDirectory(prefix="understudy-chaos-") as name:
        folder = Path(name)
        (folder / "temporary").mkdir()
        with _stage(folder, options, report) as stage, marked(folder / "temporary") as mark:
            if report.skipped:
                options = replace(options, counts=replace(options.counts, full_disks=0))
            with open_cluster(folder, options.task_managers) as cluster:
                _torment(cluster, stage, mark, options, report, say)
            _judge_leftovers(stage, mark, report)
            _judge_output(stage, report)
    report.wall_s = round(time.monotonic() - started, 2)
    return report


@contextlib.contextmanager
def _stage(folder: Path, options: Options, report: Report) -> Iterator[Stage]:
    """The folders of the run; on small disks, if any is to be full."""
    disks: dict[Disk, SmallDisk] = {}
    with contextlib.ExitStack() as stack:
        size_bytes = DISK_BYTES + DISK_BYTES_PER_FAULT * options.counts.total
        try:
            for disk in Disk if options.counts.full_disks else ():
                disks[disk] = stack.enter_context(small_disk(folder / f"disk-{disk.value}", size_bytes))
        except CannotMount as error:
            report.skipped["full-disk"] = f"{error}; it takes root, or: unshare -rm COMMAND"
            disks = {}
        homes = {disk: disks[disk].folder if disk in disks else folder for disk in Disk}
        yield Stage(folder, homes[Disk.CHECKPOINTS] / "checkpoints", homes[Disk.OUTPUT] / "output", disks)


def _torment(cluster: ProxiedCluster, stage: Stage, mark: Marked, options: Options, report: Report, say: Say) -> None:
    end = EndFile(stage.folder / "end")
    env = build(
        stage.output,
        stage.checkpoints,
        end,
        records_per_second=options.records_per_second,
        checkpoint_interval_ms=options.checkpoint_interval_ms,
    )
    observer = Observer()
    injector = Injector(observer, cluster.links, stage.disks, mark.is_ours, options.seed, say)
    with OutputReader(stage.output) as reader:
        job = cluster.submit(env, name="chaos")
        job.on_event(observer.on_event)
        failure = injector.run(plan(options.counts, options.seed, options.pace))
        ahead_s = _ahead_s(observer, reader) + END_MARGIN_S
        report.records = reader.next_index + int(ahead_s * options.records_per_second)
        end.write(report.records)
        failure = failure or _finish(job)
        report.finished = failure is None
    found = [failure, *reader.violations, _all_injected(options.counts, len(injector.injected))]
    report.violations += [str(violation) for violation in found if violation is not None]
    report.last_events = list(observer.last_events) if report.violations else []
    report.add_faults(injector.injected)
    report.restarts = observer.restarts
    report.checkpoints_completed, report.checkpoints_aborted = observer.checkpoints, dict(Counter(observer.aborted))
    report.reader_looks, report.files_taken_back = reader.looks, reader.taken_back


def _ahead_s(observer: Observer, reader: OutputReader) -> float:
    """How far the sources may be ahead of the visible output, which stands still while a checkpoint takes long.

    Of three checkpoints that complete, the second was triggered after this began, and is committed before the third.
    """
    began = time.monotonic()
    observer.wait_for_checkpoints(3, LIVENESS_S)  # a job that does not come so far is judged by its end
    reader.await_look()
    return time.monotonic() - began


def _finish(job: JobHandle) -> Violation | None:
    try:
        job.wait(timeout=LIVENESS_S)
    except (TimeoutError, JobFailed) as error:
        return Violation("liveness", f"the job was to finish: {error}")
    return None


def _all_injected(counts: Counts, injected: int) -> Violation | None:
    return None if injected == counts.total else Violation("injected", f"{injected} faults of {counts.total}")


def _judge_output(stage: Stage, report: Report) -> None:
    committed = [record for path in visible_files(stage.output) for record in read_file(path)]
    judge = exactly_once if report.finished else nothing_extra
    violation = judge(committed, expected(report.records))
    report.exact = report.finished and violation is None
    if violation is not None:
        report.violations.append(str(violation))


def _judge_leftovers(stage: Stage, mark: Marked, report: Report) -> None:
    """After the cluster was closed. A job that has finished retains no checkpoint, but the mark of their directory."""
    report.left_behind += mark.wait_for_processes(CLOSING_S)
    report.left_behind += [f"output: {name}" for name in hidden_files(stage.output)]
    report.left_behind += [f"checkpoints: {name}" for name in everything_below(stage.checkpoints) if name != MARK]
    report.left_behind += [f"temporary: {name}" for name in everything_below(mark.temporary)]
