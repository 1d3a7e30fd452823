"""One TaskManager as a process: its actor system, its data plane, its TaskManager actor, and the wait for its end.

The same function runs in a process that a LocalCluster's template forked and inside a Spark task. Whatever it starts,
it stops: the process may be a Spark worker that is used again.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa

from ...actors.async_calls.event_loop import CallLoop
from ...actors.context import Ref
from ...actors.flow.channels import DataPlane
from ...actors.operators.collector import Collector
from ...actors.operators.operator import Operator
from ...actors.stacks import NO_STACKS, Stacks
from ...actors.tasks.job_program import JobProgram
from ...actors.tasks.leader_link import TaskManagerSpec
from ...actors.tasks.outbox import Outbox
from ...actors.tasks.task_manager import NO_OUTBOX, TaskManager
from ...actors.tasks.task_setup import TaskServices, WhenFailed, ignore_failure, leave_garbage
from ...actors.tasks.task_state import StateServices
from ...actors.tasks.watched_collector import first_records_collector
from ...messages import (
    AcknowledgeCheckpoint,
    AcknowledgeRegistration,
    AcknowledgeTogether,
    CheckpointConfig,
    FirstBatchProcessed,
    Heartbeat,
    JobId,
    LeaderSessionMessage,
    LocalState,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OrderTogether,
    RegisterTaskManager,
    SubmitTask,
    TaskManagerFailing,
    TaskManagerId,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from ...messages.usual_fields import prepare
from ...state import CheckpointStorage, WorkingState, backend_named
from .. import connectors
from ..connectors import PartitionFeed
from ..connectors.spark.spark_source import RESOURCE
from ..coroutines.call_loop import CallLoopThread
from ..metrics.process_figures import ProcessFigures
from ..metrics.slot_stacks import SlotStacks
from ..output.log_levels import LogLevels
from ..output.log_relay import relayed_logs
from ..output.outbox import RelayOutbox
from ..output.print_relay import relayed_prints
from ..output.slow_coroutines import SlowCoroutines
from ..output.slow_steps import SlowSteps
from ..system import ActorSystem, CurveKeys
from ..system.clock import SystemClock
from ..system.dispatcher import Dispatcher
from ..system.remote.envelope import Envelope, WatchActor
from ..system.stepping_dispatcher import SteppingDispatcher
from ..transport import ZmqDataPlane
from .as_task_manager import as_task_manager
from .garbage import rare_collections, rarer_collections
from .local_state import local_state_of
from .module_path import search_first
from .module_sources import WatchedImports
from .other_threads import other_threads

log = logging.getLogger(__name__)

USUAL_MESSAGES = (
    AcknowledgeCheckpoint,
    AcknowledgeRegistration,
    AcknowledgeTogether,
    Envelope,
    FirstBatchProcessed,
    Heartbeat,
    LeaderSessionMessage,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OrderTogether,
    RegisterTaskManager,
    SubmitTask,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
    WatchActor,
)
"""What a TaskManager hears and says in a job without failures, by itself and inside one another."""

NEVER_REACHED = (
    "it could not connect to the JobManager at {}: see whether a firewall or a network namespace of a container stands "
    "between them, and for 127.0.0.1 whether the loopback interface is up (`ip link set lo up`)"
)
"""The end of a TaskManager that could not tell the JobManager of it."""

_MAX_SOCKET_PATH_BYTES = 100
"""Linux takes 107, macOS 103."""


@dataclass(frozen=True, slots=True)
class TaskManagerLaunch:
    """A TaskManager process's start parameters. With the cluster's key, so they travel from parent to child only."""

    job_id: JobId
    index: int
    slots: int
    job_manager_address: str
    host: str
    curve: CurveKeys
    program: bytes
    checkpoints: CheckpointConfig
    state_backend: str
    buffer_timeout_ms: int
    sys_path: tuple[str, ...]
    """Where modules are looked for first, in this order: as where the job was submitted."""
    local_state: LocalState = field(default_factory=LocalState)
    local_folder: str | None = None
    """Where that is kept if it does not say it, in a folder that goes later; None: where temporary files are."""
    warm_up: tuple[str, ...] = ()
    """What a template calls before it forks; see JobProgram."""
    rewind_memory_bytes: int = 256 * 1024 * 1024
    data_folder: str | None = None
    """A folder of mode 0700 on the machine of all TaskManagers of the job, for the data plane's Unix sockets; None: TCP
    and CURVE."""
    job_name: str = ""
    log_levels: LogLevels = field(default_factory=LogLevels)
    """Of the user's process, when the job was submitted."""
    slow_step_ms: int | None = None
    """A step that takes longer is logged; None: no watch."""
    watermark_warn_ms: int | None = None
    """Event time that stands for longer while records come is logged; None: it is not."""
    host_address: str = ""
    alone_ms: int = 0
    """See TaskManagerSpec."""


class Ending(NamedTuple):
    """How a TaskManager has ended."""

    reason: str
    never_reached: bool
    """Whether the connection failed before any JobManager had registered it."""


def run_task_manager(
    launch: TaskManagerLaunch, partition: Iterator[pa.RecordBatch] | None = None, *, relay_prints: bool = False
) -> Ending:
    """Run until released, refused or orphaned. `partition` is the Spark partition it drives, if any.

    `relay_prints`: what is printed here goes to the user's process as messages, as logs do; no pipe leads there.
    """
    search_first(launch.sys_path)
    task_manager_id = TaskManagerId(f"tm-{launch.index}-{os.urandom(4).hex()}")
    bind, end = f"tcp://{launch.host}:0", _End()
    with ExitStack() as stack:
        stack.enter_context(rare_collections())
        stack.enter_context(as_task_manager(launch.job_name))
        imports = stack.enter_context(WatchedImports())
        outbox = RelayOutbox(task_manager_id, launch.job_id, launch.job_name, os.getpid())
        stack.enter_context(relayed_logs(outbox, launch.log_levels))
        if relay_prints:
            stack.enter_context(relayed_prints(outbox))
        feed = None if partition is None else _open_feed(stack, partition, launch.rewind_memory_bytes)
        data_plane = stack.enter_context(ZmqDataPlane(_data_endpoint(launch, task_manager_id), launch.curve))
        coroutines, dispatchers = _watched(launch, stack)
        call_loop = stack.enter_context(CallLoopThread(coroutines))
        local = stack.enter_context(
            local_state_of(
                launch.local_state,
                launch.state_backend,
                launch.job_id,
                task_manager_id,
                slots=launch.slots,
                otherwise=launch.local_folder,
            )
        )
        system = stack.enter_context(
            ActorSystem(task_manager_id, bind=bind, curve=launch.curve, dispatchers=dispatchers)
        )
        task_manager = make_task_manager(
            launch,
            task_manager_id,
            JobProgram.loads(launch.program, imports.watch),
            data_plane,
            CheckpointStorage(launch.checkpoints.directory, has_mark=True),  # the JobManager has made it
            CheckpointStorage,
            end.reached,
            resources={} if feed is None else {RESOURCE: feed},
            pid=os.getpid(),
            call_loop=call_loop,
            outbox=outbox,
            local=local,
            stacks=SlotStacks(),
            process_figures=ProcessFigures(),
            collect_garbage=gc.collect,
        )
        actor = system.spawn(task_manager, name="task-manager")
        if feed is not None:
            end.then(feed.close)
            _drive(feed, actor, task_manager_id)
        return Ending(end.wait(), task_manager.never_reached)


def make_task_manager(
    launch: TaskManagerLaunch,
    task_manager_id: TaskManagerId,
    program: JobProgram,
    data_plane: DataPlane,
    storage: CheckpointStorage,
    open_storage: Callable[[str], CheckpointStorage],
    on_ended: Callable[[str], None],
    *,
    resources: dict[str, Any],
    pid: int,
    call_loop: Callable[[], CallLoop],
    when_failed: WhenFailed = ignore_failure,
    outbox: Outbox = NO_OUTBOX,
    local: WorkingState = WorkingState(),  # noqa: B008 - it is frozen
    stacks: Stacks = NO_STACKS,
    process_figures: Callable[[], dict[str, float]] = dict,
    make_collector: Callable[[Operator], Collector] = first_records_collector,
    collect_garbage: Callable[[], object] = leave_garbage,
) -> TaskManager:
    """The actor that a TaskManager process is there for; the simulator makes its own from the same launch. `storage`:
    that of the job's checkpoints.
    """
    services = TaskServices(
        program=program,
        data_plane=data_plane,
        state=StateServices(
            storage,
            backend_named(launch.state_backend, local),
            launch.checkpoints.inline_threshold_bytes,
            open_storage,
            call_loop,
            local.copies,
            launch.checkpoints.incremental and launch.state_backend != "memory",
            launch.checkpoints.encryption_key,
        ),
        exactly_once=launch.checkpoints.exactly_once,
        buffer_timeout_ms=launch.buffer_timeout_ms,
        resources=resources,
        task_manager_name=task_manager_id,
        when_failed=when_failed,
        watermark_warn_ms=launch.watermark_warn_ms,
        stacks=stacks,
        process_figures=process_figures,
        make_collector=make_collector,
        threads=other_threads,
        collect_garbage=collect_garbage,
    )
    spec = TaskManagerSpec(
        task_manager_id,
        launch.job_id,
        launch.index,
        launch.slots,
        launch.job_manager_address,
        launch.host,
        pid,
        launch.host_address,
        launch.alone_ms,
    )
    return TaskManager(spec, services, on_ended, outbox)


def prepare_forks() -> None:
    """What each TaskManager of this template would do again."""
    connectors.load_all()
    pa.array([0])  # with its first array Arrow imports pandas, if installed
    prepare(USUAL_MESSAGES)


def main_of_fork(launch: bytes) -> Ending:
    """Entry point of a forked process."""
    return run_task_manager(cloudpickle.loads(launch))


def _watched(
    launch: TaskManagerLaunch, stack: ExitStack
) -> tuple[Callable[[asyncio.AbstractEventLoop], None], dict[str, Dispatcher]]:
    """What is called with the coroutines' loop when that begins, and threads of tasks, in place of the system's own:
    watched both.
    """
    if launch.slow_step_ms is None:
        return lambda _: rarer_collections(), {}
    clock = SystemClock()
    coroutines = SlowCoroutines(launch.slow_step_ms, clock)
    steps = SlowSteps(launch.slow_step_ms, clock, also=coroutines.look, on_the_loop=coroutines.running)
    watch = stack.enter_context(steps)

    def begin(loop: asyncio.AbstractEventLoop) -> None:
        rarer_collections()
        coroutines.begin(loop)

    return begin, {"stepping": SteppingDispatcher(clock, watch)}


def _data_endpoint(launch: TaskManagerLaunch, task_manager_id: TaskManagerId) -> str:
    if launch.data_folder is not None:
        path = f"{launch.data_folder}/{task_manager_id}"
        if len(os.fsencode(path)) <= _MAX_SOCKET_PATH_BYTES:
            return f"ipc://{path}"
    return f"tcp://{launch.host}:0"


def _open_feed(stack: ExitStack, partition: Iterator[pa.RecordBatch], memory_bytes: int) -> PartitionFeed:
    feed = PartitionFeed(partition, memory_bytes)
    stack.callback(feed.release)
    return feed


def _drive(feed: PartitionFeed, actor: Ref, task_manager_id: TaskManagerId) -> None:
    """Read the partition, on this thread, for as long as the TaskManager wants rows of it."""
    try:
        feed.pump()
    except Exception as error:  # noqa: BLE001 - supervision boundary: the JobManager is notified and starts another
        log.warning("%s cannot go on with its Spark partition: %s", task_manager_id, error)
        actor.tell(TaskManagerFailing(task_manager_id, f"{type(error).__name__}: {error}"))


class _End:
    """The TaskManager's end, set by its actor's thread and awaited by the process's main thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._reason = ""
        self._callbacks: list[Callable[[], object]] = [self._event.set]

    def reached(self, reason: str) -> None:
        with self._lock:
            self._reason = reason
            for callback in self._callbacks:
                callback()

    def then(self, callback: Callable[[], object]) -> None:
        """Call back when the end is reached, at once if it has been."""
        with self._lock:
            self._callbacks.append(callback)
            if self._event.is_set():
                callback()

    def wait(self) -> str:
        self._event.wait()
        return self._reason
