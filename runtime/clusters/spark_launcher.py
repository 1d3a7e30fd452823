"""SparkLauncher: one Spark job per TaskManager.

TaskManager i is the Python side of one `mapInArrow` over partition i: it drives the partition's iterator for as long
as the streaming job runs. Each runs in a Spark job of its own, submitted from a thread of its own, so when one Python
worker dies only its Spark job fails, and only that one is submitted again; the others run on. (A barrier stage would
be aborted whole; and so would every Spark job over the RDD of the failed stage; so each has its own.) On a cluster
with more than one allowed task failure Spark itself retries first: the next attempt is a new TaskManager too.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...messages import JobId, SubmitJob, TaskManagerAwaited, TaskManagerExited
from .memory_events import MemoryEvents
from .spark_batch_limit import unmeasured_batches
from .spark_failure import CRASHED, told, was_cancelled, why_tasks_failed, with_kills
from .spark_input import pipe_of_worker, whole
from .spark_session_use import why_gone
from .spark_slot_watch import SlotWatch
from .task_manager_process import NEVER_REACHED, TaskManagerLaunch, run_task_manager

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

GRACE_SECONDS = 3.0

LAST_WORD_SECONDS = 1.0
"""How long a Spark job whose TaskManager is lost may take to end by itself, which says more than a cancelled one."""

_NEVER_REACHED = (
    NEVER_REACHED
    + "; its Spark task ran on {}: if that is another machine, give SparkCluster host=, an address of this "
    "one that it can reach"
)

_LOST = "the TaskManager was lost, so Understudy cancelled its Spark job; Spark gives no other reason"
_LATE = f"its job is over, and it had not ended {GRACE_SECONDS:.0f} s later, so Understudy cancelled its Spark job"
_NOT_BY_US = (
    "its Spark job was cancelled, and not by Understudy: Ctrl-C in a program with a SparkSession does it (PySpark "
    "cancels all Spark jobs), and so do cancelAllJobs() and the kill links of Spark's page"
)

_PLAIN = re.compile(r"\w+")
"""Names of columns that Spark takes for nothing else."""


@dataclass(slots=True)
class _SparkJob:
    """One streaming job's plans: which Java RDD and partition each TaskManager drives."""

    plans: list[tuple[Any, int]]
    group: str
    watch: SlotWatch
    threads: dict[int, threading.Thread] = field(default_factory=dict)
    cancelled: dict[int, str] = field(default_factory=dict)
    """Those whose Spark jobs were cancelled from here, by index, and why."""


class SparkLauncher:
    """Submits and resubmits the Spark jobs that TaskManagers live in. `tell` reaches the JobManager, from any
    thread.
    """

    def __init__(
        self,
        spark: SparkSession,
        tell: Callable[[TaskManagerAwaited | TaskManagerExited], None],
        slot_timeout_ms: int,
    ) -> None:
        self._spark = spark
        self._tell = tell
        self._slot_timeout_ms = slot_timeout_ms
        self._memory = MemoryEvents() if str(spark.sparkContext.master).startswith("local") else None
        """Of this machine, where all TaskManagers are on it."""
        self._jobs: dict[JobId, _SparkJob] = {}
        self._lock = threading.Lock()

    def prepare(
        self, launch: TaskManagerLaunch, task_managers: int, dataframes: Mapping[int, tuple[DataFrame, int]]
    ) -> None:
        """Plan the job's Spark side. `dataframes`: first TaskManager -> (DataFrame, how many TaskManagers read it).

        A TaskManager without a DataFrame gets a partition that it does not read. Runs the shuffles that the
        DataFrames need, so it may take a while.
        """
        plans: list[tuple[Any, int] | None] = [None] * task_managers
        for first, (dataframe, count) in dataframes.items():
            with unmeasured_batches(dataframe):
                rdds = _rdds_of(dataframe, count, replace(launch, index=first))
            for partition, rdd in enumerate(rdds):
                plans[first + partition] = (rdd, partition)
        if any(plan is None for plan in plans):
            unread = _mapped(self._spark.range(0, task_managers, 1, task_managers), launch, reads=False)
            plans = [plan or (_rdd_of(unread), index) for index, plan in enumerate(plans)]
        group = f"understudy-{launch.job_id}"
        watch = SlotWatch(self._spark, self._tell, launch, group, task_managers, self._slot_timeout_ms)
        self._jobs[launch.job_id] = _SparkJob([plan for plan in plans if plan], group, watch)

    def expect(self, wanted: SubmitJob) -> None:
        """All is prepared."""

    def start(self, job_id: JobId, index: int) -> None:
        job = self._jobs[job_id]
        thread = threading.Thread(
            target=self._run, args=(job_id, job, index), name=f"understudy-spark-{index}", daemon=True
        )
        with self._lock:
            job.threads[index] = thread
            job.cancelled.pop(index, None)
        thread.start()
        job.watch.started(index, thread)

    def kill(self, job_id: JobId, index: int) -> None:
        """Cancel its Spark job; with interruption, since the TaskManager does not answer. One that is about to end by
        itself, of a process that died or of its rows, is given a moment to say so.
        """
        job = self._jobs[job_id]
        threading.Thread(target=self._cancel, args=(job, index, job.threads.get(index)), daemon=True).start()

    def abandon(self, job_id: JobId) -> None:
        """Nothing of an earlier driver is this one's to end."""

    def forget(self, job_id: JobId) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.watch.close()
            threading.Thread(target=self._wait_and_cancel, args=(job,), daemon=True).start()

    def close(self) -> None:
        """Wait until every Spark job of ours has ended, cancelling those that do not end by themselves."""
        for job in list(self._jobs.values()):
            job.watch.close()
            self._wait_and_cancel(job)
        self._jobs.clear()

    def _run(self, job_id: JobId, job: _SparkJob, index: int) -> None:
        context = self._spark.sparkContext
        rdd, partition = job.plans[index]
        reason, repeatable = "", False
        try:
            context.setJobGroup(f"{job.group}-{index}", f"Understudy TaskManager {index} of {job_id}", True)
            jvm: Any = context._jvm
            partitions = jvm.java.util.ArrayList()
            partitions.append(partition)
            reason = _last_word(jvm.PythonRDD.runJob(context._jsc.sc(), rdd, partitions))
        except Exception as error:  # noqa: BLE001 - supervision boundary: whatever ended it, the JobManager decides
            reason, repeatable = told(error)
            if was_cancelled(reason):
                reason = self._why_cancelled(job, index)
            if self._memory is not None and CRASHED in reason:
                reason = with_kills(reason, self._memory.kills())
        gone = None
        with contextlib.suppress(Exception):  # what cannot be asked may be there
            gone = why_gone(self._spark)
        self._tell(TaskManagerExited(job_id, index, gone or reason, repeatable, is_last=gone is not None))

    def _why_cancelled(self, job: _SparkJob, index: int) -> str:
        with contextlib.suppress(Exception):  # Spark's books are of an interface that is its own
            if said := why_tasks_failed(self._spark.sparkContext, f"{job.group}-{index}"):
                return said
        return job.cancelled.get(index, _NOT_BY_US)

    def _cancel(self, job: _SparkJob, index: int, thread: threading.Thread | None) -> None:
        if thread is not None:
            thread.join(LAST_WORD_SECONDS)
        if thread is None or (thread.is_alive() and job.threads.get(index) is thread):
            self._cancel_group(job, index, _LOST)

    def _wait_and_cancel(self, job: _SparkJob) -> None:
        for index, thread in job.threads.copy().items():
            thread.join(GRACE_SECONDS)
            if thread.is_alive():
                self._cancel_group(job, index, _LATE)
                thread.join(GRACE_SECONDS)

    def _cancel_group(self, job: _SparkJob, index: int, why: str) -> None:
        job.cancelled[index] = why
        with contextlib.suppress(Exception):  # the Spark session may be gone already
            self._spark.sparkContext.cancelJobGroup(f"{job.group}-{index}")


class _TaskManagerFunction:
    """What Spark calls with the partition's iterator: runs the TaskManager and yields how it ended."""

    def __init__(self, launch: TaskManagerLaunch, reads: bool, names: Sequence[str] | None = None) -> None:
        """`names`: what the columns are to be called, if not as they come."""
        self._launch = launch
        self._reads = reads
        self._names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        launch = replace(self._launch, index=self._launch.index + partition)
        rows = whole(batches, pipe_of_worker())
        named = rows if self._names is None else (batch.rename_columns(self._names) for batch in rows)
        reason, never_reached = run_task_manager(launch, named if self._reads else None, relay_prints=True)
        if never_reached:
            reason = _NEVER_REACHED.format(launch.job_manager_address, os.uname().nodename)
        yield pa.RecordBatch.from_pydict({"reason": [reason]})


def _mapped(dataframe: DataFrame, launch: TaskManagerLaunch, reads: bool = True) -> DataFrame:
    """The DataFrame whose partitions, when they are computed, are TaskManagers from `launch.index` on."""
    names = dataframe.columns
    is_plain = all(_PLAIN.fullmatch(name) for name in names) and len({name.lower() for name in names}) == len(names)
    if not is_plain:  # mapInArrow takes "a.b" for a field of a struct "a", and cannot tell "Day" from "day"
        dataframe = dataframe.toDF(*(f"column_{index}" for index in range(len(names))))
        return dataframe.mapInArrow(_TaskManagerFunction(launch, reads, names), "reason string")
    return dataframe.mapInArrow(_TaskManagerFunction(launch, reads), "reason string")


def _rdds_of(dataframe: DataFrame, count: int, launch: TaskManagerLaunch) -> list[Any]:
    """As many Java RDDs as TaskManagers read the DataFrame, each of `count` partitions.

    Partitions are merged where there are enough, which needs no shuffle. How many there are Spark may know only when it
    has run the shuffles, which the RDDs of one plan share. Of what it finds to be empty it makes no partition at all,
    whatever was asked for: then others without rows take their place.
    """
    for frame in (dataframe.coalesce(count), dataframe.repartition(count)):
        mapped = _mapped(frame, launch)
        rdds = [_rdd_of(mapped) for _ in range(count)]
        found = rdds[0].getNumPartitions()
        if found == count:
            return rdds
    assert found == 0, f"{found} partitions of a DataFrame that was to have {count}"
    mapped = _mapped(dataframe.sparkSession.range(0, count, 1, count).where("id < 0"), launch)
    return [_rdd_of(mapped) for _ in range(count)]


def _rdd_of(mapped: DataFrame) -> Any:
    """A Java RDD of its own at each call, over the same plan: they share shuffled data."""
    return mapped._jdf.javaToPython()


def _last_word(result: Any) -> str:
    """How the TaskManager says that it has ended: the one row of its Spark job, which is read to its end. An error on
    the Spark side is raised here.
    """
    from pyspark.serializers import CPickleSerializer
    from pyspark.util import _load_from_socket

    loaded: Any = _load_from_socket(result, CPickleSerializer())
    with loaded if hasattr(loaded, "__enter__") else contextlib.nullcontext(loaded) as batches:
        words = [row[0] for rows in batches for row in rows]
    return words[-1] if words else "its Spark job ended, and gave no reason"
