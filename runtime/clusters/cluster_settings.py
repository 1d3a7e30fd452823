"""ClusterSettings: what holds for every job of a cluster, checked when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import ParamSpec, TypedDict, TypeVar

from ...actors.job_manager.job_manager_settings import (
    CANCEL_TIMEOUT_MS,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_TIMEOUT_MS,
    SLOT_TIMEOUT_MS,
)
from ...messages.known_names import known_arguments
from ...state.checkpoints.job_runs import LEASE_MS
from ..api.checks import at_least, finite_ms, text
from ..api.errors import InvalidSetting
from ..web.binding import check_binding
from .configuration import Configuration

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What holds for every job of a cluster."""

    task_managers: int = 1
    slots_per_task_manager: int = 1
    host: str = "127.0.0.1"
    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS
    heartbeat_timeout_ms: int = HEARTBEAT_TIMEOUT_MS
    slot_timeout_ms: int = SLOT_TIMEOUT_MS
    """How long a job waits for the slots that it needs before it fails with NoResourceAvailable. Flink:
    slot.request.timeout.
    """
    cancel_timeout_ms: int = CANCEL_TIMEOUT_MS
    """How long a task may take to stop before its TaskManager is killed. Flink: task.cancellation.timeout."""
    name_lease_ms: int = LEASE_MS
    """How long after its last word a job that was submitted with `resume` keeps its name, when nobody can see whether
    its process still runs.
    """
    web_port: int | None = None
    """Where the page and the REST interface are served (docs/web.md); 0: at any free port, None: nowhere."""
    web_host: str = "127.0.0.1"
    """An address that others can reach wants a token."""
    web_token: str | None = None
    """What readers of the page have to show."""
    history_dir: str | None = None
    """A folder, or any URL that fsspec knows, where jobs are kept after their end, to be looked at; None: nowhere."""
    config: Mapping[str, str | float] = field(default_factory=dict)
    """By name, as `Configuration` lists them: where savepoints are kept, how jobs restart. Numbers may be text."""

    def __post_init__(self) -> None:
        Configuration.of(self.config)
        for name in ("task_managers", "slots_per_task_manager"):
            at_least(name, getattr(self, name), 1)
        text("host", self.host)
        self._check_web()
        for each in fields(self):
            if each.name.endswith("_ms"):
                finite_ms(each.name, getattr(self, each.name))
        if self.heartbeat_timeout_ms <= self.heartbeat_interval_ms:
            raise InvalidSetting(
                f"heartbeat_timeout_ms ({self.heartbeat_timeout_ms}) must be longer than "
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms})"
            )

    def _check_web(self) -> None:
        if self.web_port is None:
            return
        port = self.web_port
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65_535:
            raise InvalidSetting(f"web_port: wanted a port, 0 to 65535, or None, found {port!r}")
        text("web_host", self.web_host)
        check_binding(self.web_host, self.web_token)


class ClusterOptions(TypedDict, total=False):
    """The settings beside the first two, as keywords of a cluster: type checkers and completion know them by this."""

    host: str
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_timeout_ms: int
    cancel_timeout_ms: int
    name_lease_ms: int
    web_port: int | None
    web_host: str
    web_token: str | None
    history_dir: str | None
    config: Mapping[str, str | float]


def known_settings(called: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates the `__init__` of a cluster with `**settings`: a call that does not fit says which there are."""
    others = [field.name for field in fields(ClusterSettings)][2:]
    return known_arguments(called, first=1, also=others, elsewhere=_ELSEWHERE)


_PROCESSES = "write task_managers=..., which is how many processes run the job's tasks"
_SLOTS = (
    "write slots_per_task_manager=..., which is how many threads of a TaskManager run tasks; the Python code of one "
    "process runs on one core, so for more cores write task_managers=..."
)
_PAGE = "write web_port=8081 for the page and the REST interface, or web_port=0 for any free port"
_OF_PROGRAMS = (
    "parallelism",
    "max_parallelism",
    "checkpoint_dir",
    "checkpoint_interval_ms",
    "state_backend",
    "state_dir",
    "restart_strategy",
)
_ELSEWHERE = {
    **dict.fromkeys(("workers", "n_workers", "num_workers", "processes", "n_jobs", "num_task_managers"), _PROCESSES),
    **dict.fromkeys(("threads", "threads_per_worker", "nthreads", "num_task_slots", "task_slots"), _SLOTS),
    **dict.fromkeys(("cores", "cpus", "num_cpus", "n_cpus"), _PROCESSES),
    **dict.fromkeys(("port", "rest_port", "dashboard_port", "dashboard_address", "dashboard"), _PAGE),
    **{each: f"it is the program's: write StreamEnvironment({each}=...)" for each in _OF_PROGRAMS},
    "name": "a job has one: write cluster.submit(env, name=...)",
    "memory_limit": "there is none: state_backend='rocksdb' of StreamEnvironment keeps state on the disk",
}
"""Of Dask, Ray, multiprocessing, joblib and Flink; and what is set elsewhere."""
