"""A JobManager as a process that stands alone: `understudy jobmanager`.

    waits to lead -> leads: its JobManager and ResourceManager run -> deposed, and waits again; or stopped

One that has led, and is deposed because nobody answers where leaders are elected, waits until somebody does.

Without a successor (recovery.mode standalone) it leads from its start to its end, and what runs ends with it. It runs
no user code, and unpickles nothing.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import zmq

from ...actors.context import Ref
from ...actors.job_manager.job_manager import JobManager
from ...actors.job_manager.takeovers import LeaderPublished
from ...messages import CancelJob, JobList, JobSummary, LeaderSessionId, ListJobs
from ...state import CheckpointStorage
from ...state.checkpoints.high_availability import HighAvailability
from ...state.checkpoints.job_runs import Claimant
from ...state.checkpoints.savepoints import Savepoints
from ...state.errors import LostLeadership, UnreachableRoot, UnwritableRoot
from ..clusters.announcement import Announced
from ..clusters.cluster import SUBMIT_TIMEOUT_MS
from ..clusters.configuration import Configuration
from ..clusters.leading import Leading, leading
from ..clusters.remote_cluster import in_digits
from ..clusters.watch import Watch
from ..clusters.work_dir import made_work_dir, remove_work_dir
from ..high_availability.errors import HighAvailabilityError, NotOurs, NotReachable
from ..high_availability.kept_jobs import TakenOver
from ..metrics.slot_stacks import SlotStacks
from ..output.delivery import OutputDelivery
from ..system import ActorSystem, CurveKeys
from ..system.this_process import is_gone, this_process
from .errors import ProcessFailed
from .host_programs import HostPrograms
from .keys import load_keys
from .log_files import log_to_file
from .programs import Programs
from .resource_manager import JOB_MANAGER, HostLauncher, HostTimes, ResourceManager
from .resource_manager import NAME as RESOURCE_MANAGER
from .settings import HostSettings
from .standing_process import PidFile, Stop

log = logging.getLogger(__name__)

CANCEL_SECONDS = 5.0
"""How long jobs may take to be cancelled when the process is stopped."""
LOOK_SECONDS = 0.05
AGAIN_SECONDS = 1.0
"""Between two tries to stand for election, where nobody answers."""


def run_job_manager(settings: HostSettings, *, in_background: bool = False) -> str:
    """Run until SIGTERM, SIGINT or a terminal's SIGHUP, on the main thread; returns why it ended.

    Raises HostError, InsecureKeyFile, UnwritableRoot, UnreachableRoot, UnwritableFolder, HighAvailabilityError where it
    cannot begin.
    """
    keys, stop = load_keys(settings), Stop()
    CheckpointStorage(settings.storage_dir).check()
    with ExitStack() as stack:
        locked = PidFile(settings.run_dir, "jobmanager", settings.log_dir, settings.storage_dir)
        pid_file = stack.enter_context(contextlib.closing(locked))
        log_to_file(settings, pid_file.state.log_file, in_background=in_background)
        stack.enter_context(stop.on_signals())
        has_led = False
        waits = partial(pid_file.update, is_ready=True)  # behind a leader of this cluster; another one's ends it
        while not stop.reason:
            lead = leading(settings.high_availability())
            try:
                if settings.has_successors:
                    log.info("JobManager, process %d: waits to lead", pid_file.state.pid)
                    pid_file.update(address="")
                if stop.unless(lambda: lead.begin(waits), lead.end):  # noqa: B023 - it is called within this round
                    has_led = True
                    _lead(settings, keys, lead, stop, pid_file)
            except LostLeadership as error:
                log.warning("this JobManager leads no more: %s", error)
            except (HighAvailabilityError, UnwritableRoot, UnreachableRoot) as error:
                if not has_led or not isinstance(error, NotReachable | NotOurs | UnwritableRoot | UnreachableRoot):
                    log.error("the JobManager ends: %s", error)
                    raise
                log.warning("this JobManager waits to lead, and asks again: %s", error)
                stop.pause(AGAIN_SECONDS)
            finally:
                lead.end()
        log.info("the JobManager ends: %s", stop.reason)
        return stop.reason


def _lead(settings: HostSettings, keys: CurveKeys, lead: Leading, stop: Stop, pid_file: PidFile) -> None:
    """One term: until this process is stopped, or leads no more."""
    over: list[str] = []

    def ended(reason: str) -> None:
        over.append(reason)
        stop.nudge()

    with ExitStack() as stack:
        system = _listening(settings, keys)
        stack.callback(system.shutdown)
        work_dir = made_work_dir()
        stack.callback(remove_work_dir, work_dir)
        jobs = _Jobs(settings, keys, system, lead.high_availability(lambda: LeaderSessionId(system.new_id("session"))))
        stack.callback(
            lambda: jobs.close(cancel=bool(stop.reason) and not settings.has_successors, is_deposed=bool(over))
        )
        jobs.watch(ended)
        if not stop.unless(lambda: lead.inherited(jobs.take_over), lead.end):
            return
        lead.publish(system.address, ended)  # whoever finds it finds its jobs, too
        jobs.published()
        stack.enter_context(contextlib.closing(Announced(work_dir, system.address, settings.key_file)))
        pid_file.update(address=system.address, is_ready=True)
        log.info("JobManager at %s, process %d", system.address, pid_file.state.pid)
        stop.wait(lambda: bool(over))
        if over and not stop.reason:
            log.warning("this JobManager leads no more: %s", over[0])
            if not settings.has_successors:
                stop.request(over[0])


def _listening(settings: HostSettings, keys: CurveKeys) -> ActorSystem:
    """Raises ProcessFailed where it cannot listen, as when another process has the port."""
    host = settings.jobmanager_bind_host or settings.jobmanager_host
    bind = f"tcp://{host}:{settings.jobmanager_port}"
    try:
        bind = f"tcp://{in_digits(host)}:{settings.jobmanager_port}"
        return ActorSystem(JOB_MANAGER, bind=bind, curve=keys, advertised_host=settings.jobmanager_host).start()
    except (OSError, zmq.ZMQError) as error:
        raise ProcessFailed(
            f"the JobManager cannot listen at {bind}: {error}; see jobmanager.port, and jobmanager.bind-host where "
            "jobmanager.host is no address of this host's own"
        ) from error


class _Jobs:
    """The JobManager of a leader, with all that it needs, until `close`."""

    def __init__(
        self, settings: HostSettings, keys: CurveKeys, system: ActorSystem, high_availability: HighAvailability
    ) -> None:
        self._settings = settings
        self._system = system
        self._delivery = OutputDelivery()
        self._claimant = Claimant(this_process(), is_gone, system.clock.wall_ms, settings.name_lease_ms)
        self._programs = HostPrograms(Programs(settings.storage_dir, keys))
        times = HostTimes(settings.heartbeat_interval_ms, settings.heartbeat_timeout_ms)
        self._resource_manager = system.spawn(
            ResourceManager(high_availability.session, system.actor_of(JOB_MANAGER), times),
            name=RESOURCE_MANAGER,
        )
        self._job_manager: Ref = system.spawn(
            JobManager(
                settings.job_manager_settings(),
                HostLauncher(self._resource_manager),
                self._savepoints(),
                high_availability,
                self._claimant,
                output=self._delivery.offer,
                stacks=SlotStacks(),
                programs=self._programs,
            ),
            name=JOB_MANAGER,
        )

    def watch(self, ended: Callable[[str], None]) -> None:
        """Say when one of its actors has ended, which they do only when it does not lead any more."""
        for ref in (self._job_manager, self._resource_manager):
            self._system.spawn(Watch(ref, ended))

    def take_over(self, left: TakenOver) -> None:
        """Go on with a job of an earlier leader. Its code lies where it was stored when it was submitted."""
        self._job_manager.ask(left.submitted, timeout_ms=SUBMIT_TIMEOUT_MS).result()

    def published(self) -> None:
        """Hosts find this leader from now on, and TaskManagers that still run its jobs."""
        self._job_manager.tell(LeaderPublished())

    def close(self, *, cancel: bool, is_deposed: bool) -> None:
        """End. `cancel`: what still runs, as nothing goes on without it; else a successor goes on with that. It goes on
        with jobs that have ended, too, if a deposed leader could not say so any more: that deletes no code.
        """
        if cancel:
            with contextlib.suppress(Exception):  # whatever is in the way, the process ends
                self._cancel_all()
        self._system.shutdown()
        if not is_deposed:
            self._programs.close()
        self._claimant.close()
        self._delivery.close()

    def _cancel_all(self) -> None:
        running = [job.job_id for job in self._jobs() if not job.status.is_terminal]
        if not running:
            return
        log.warning("cancels %d jobs, which end with their JobManager: %s", len(running), ", ".join(running))
        for job_id in running:
            self._job_manager.ask(CancelJob(job_id)).result(CANCEL_SECONDS)
        deadline = time.monotonic() + CANCEL_SECONDS
        while time.monotonic() < deadline and not all(job.status.is_terminal for job in self._jobs()):
            time.sleep(LOOK_SECONDS)

    def _jobs(self) -> tuple[JobSummary, ...]:
        listed: JobList = self._job_manager.ask(ListJobs()).result(CANCEL_SECONDS)
        return listed.jobs

    def _savepoints(self) -> Savepoints:
        store = Configuration.of(self._settings.configuration).savepoint_store(CheckpointStorage)
        return Savepoints(store, CheckpointStorage)
