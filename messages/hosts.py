"""What is said between the JobManager's side and TaskManager processes that stand alone: who offers slots, which
TaskManagers are to be started there, and how they ended. Flink: ResourceManager and TaskExecutor.

A TaskManager process of a stand-alone cluster is here a *host*: it offers slots to all jobs, and starts one child
process per TaskManager of a job. What is said between that child and the JobManager stands in `registration`.
"""

from __future__ import annotations

from dataclasses import field

from .ids import HostId, JobId, LaunchId, LeaderSessionId
from .job import ProgramFile
from .job_graph import CheckpointConfig
from .registry import message


@message
class HostedTaskManager:
    """One TaskManager that runs on a host, or is about to."""

    launch_id: LaunchId
    job_id: JobId
    index: int
    slots: int


@message
class RegisterHost:
    """Host -> ResourceManager: here I am, with these slots. Repeated until it is answered."""

    host_id: HostId
    number: int
    """Which registration of this host it is: repeats have the same number, and one after a loss the next."""
    control_address: str
    """Address of the host's actor."""
    host: str
    """The name or address by which other hosts reach it."""
    pid: int
    slots: int
    running: tuple[HostedTaskManager, ...]
    """Those that it has started for an earlier leader, or before the connection broke, and that run still."""
    releases: dict[str, str] = field(default_factory=dict)
    """Of Python and of the libraries that matter, by name; empty where the host does not say it."""


@message
class AcknowledgeHost:
    """ResourceManager -> host: registered, in this session."""

    leader_session_id: LeaderSessionId
    host_id: HostId
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int


@message
class HostHeartbeat:
    """Both ways; a side that receives none for the timeout takes the other for lost."""

    host_id: HostId


@message
class LaunchTaskManager:
    """ResourceManager -> host: start this TaskManager. Answered by HostedTaskManagerEnded when it has ended, or could
    not be started. Repeats are harmless.
    """

    task_manager: HostedTaskManager
    job_name: str
    program: ProgramFile
    checkpoints: CheckpointConfig
    state_backend: str
    buffer_timeout_ms: int
    slow_step_ms: int | None
    watermark_warn_ms: int | None


@message
class EndTaskManager:
    """ResourceManager -> host: end this TaskManager by force."""

    launch_id: LaunchId


@message
class ReleaseJob:
    """ResourceManager -> host: the job is over; what still runs of it after a grace period is ended by force."""

    job_id: JobId


@message
class HostedTaskManagerEnded:
    """Host -> ResourceManager: this TaskManager's process is gone."""

    host_id: HostId
    launch_id: LaunchId
    reason: str


@message
class HostLeaving:
    """Host -> ResourceManager: I end now, and with me all that I have started."""

    host_id: HostId
    reason: str


@message
class ListHosts:
    """Client -> ResourceManager. Answered with HostList."""


@message
class HostSummary:
    host_id: HostId
    host: str
    pid: int
    slots: int
    free_slots: int
    task_managers: tuple[HostedTaskManager, ...]


@message
class AwaitedTaskManager:
    """One TaskManager of a job that waits for free slots."""

    job_id: JobId
    index: int
    slots: int


@message
class HostList:
    """In the order of their registration."""

    hosts: tuple[HostSummary, ...]
    waiting: tuple[str, ...] = ()
    """TaskManagers of jobs that wait for a free slot, and why, a line each."""
    awaited: tuple[AwaitedTaskManager, ...] = ()
    """The same ones."""
    releases: dict[str, str] = field(default_factory=dict)
    """Python and the libraries of the JobManager's process, by name."""
