"""SlotWatch: tells the JobManager, and the log, which TaskManagers of a job wait for task slots of Spark, and why."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...messages import TaskManagerAwaited
from .spark_slots import Shortage, runs, shortage
from .task_manager_process import TaskManagerLaunch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("understudy.job")

LOOK_SECONDS = 5.0
QUIET_LOOKS = 2
"""An executor that starts takes a while; only then is it worth a warning."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """One TaskManager. `thread`: which waits for the end of its Spark job; `looks`: at which it had no slot."""

    thread: threading.Thread
    looks: int = 0


class SlotWatch:
    """Of one job. Its thread lives while a TaskManager that was started has no slot. Any thread may use it.

    `tell` gets a TaskManagerAwaited at each look, a few times in the time that the job waits for slots.
    """

    def __init__(
        self,
        spark: SparkSession,
        tell: Callable[[TaskManagerAwaited], None],
        launch: TaskManagerLaunch,
        group: str,
        task_managers: int,
        slot_timeout_ms: int,
    ) -> None:
        self._spark = spark
        self._tell = tell
        self._launch = launch
        self._group = group
        self._task_managers = task_managers
        self._look_seconds = min(LOOK_SECONDS, slot_timeout_ms / 3000)
        self._lock = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        """Those that have not been seen to run, by index."""
        self._is_watched = False
        self._over = threading.Event()

    def started(self, index: int, thread: threading.Thread) -> None:
        """Its Spark job is being submitted, from this thread."""
        with self._lock:
            self._waiting[index] = _Waiting(thread)
            if self._is_watched:
                return
            self._is_watched = True
        threading.Thread(target=self._watch, name="understudy-spark-slots", daemon=True).start()

    def close(self) -> None:
        """Nobody waits any more."""
        self._over.set()

    def _watch(self) -> None:
        said = ""
        while not self._over.wait(self._look_seconds):
            with self._lock:
                waiting = dict(self._waiting)
                self._is_watched = bool(waiting)
            if not waiting:
                return
            try:
                short = self._look(waiting)
            except Exception:  # noqa: BLE001 - Spark's books are of an interface that is its own, and it may be gone
                short = None
            if short is None or short.lasting == said:
                continue
            if max(each.looks for each in waiting.values()) > QUIET_LOOKS:
                log.warning("job %r waits for Spark: %s", self._launch.job_name, short.why)
                said = short.lasting

    def _look(self, waiting: dict[int, _Waiting]) -> Shortage | None:
        """Why those wait that do; None: all run, or have ended, or there are slots for them."""
        context: Any = self._spark.sparkContext
        left = [
            index
            for index, each in waiting.items()
            if each.thread.is_alive() and not runs(context, f"{self._group}-{index}")
        ]
        with self._lock:
            for index in waiting.keys() - left:
                if self._waiting[index] is waiting[index]:
                    del self._waiting[index]
        short = shortage(context, self._task_managers, self._task_managers - len(left)) if left else None
        if short is not None:
            for index in left:
                waiting[index].looks += 1
                if not self._over.is_set():
                    self._tell(TaskManagerAwaited(self._launch.job_id, index, short.why))
        return short
