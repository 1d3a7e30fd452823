"""A TaskManager process that stands alone: `understudy taskmanager`. It offers this host's slots to the jobs of a
JobManager, and forks a child for each TaskManager of a job, from a template that has everything imported.

Its end ends them all. Without a JobManager it stays, and registers again when that is back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ...actors.context import Ref
from ...messages import HostId, JobId, LaunchTaskManager, TaskManagerExited
from ..clusters.local_launcher import LocalLauncher
from ..clusters.remote_cluster import in_digits, own_host
from ..clusters.task_manager_process import TaskManagerLaunch
from ..clusters.watch import Watch
from ..clusters.work_dir import made_work_dir, remove_work_dir, see_work_dir
from ..output.log_levels import LogLevels
from ..system import ActorSystem, CurveKeys
from .errors import ProcessFailed
from .host import Host, HostSpec, Leave
from .keys import load_keys
from .leaders import leaders_of
from .log_files import log_to_file
from .programs import Programs, unpack
from .resource_manager import JOB_MANAGER
from .settings import HostSettings
from .standing_process import PidFile, Stop

log = logging.getLogger(__name__)

HOST = "host"
"""The actor's name."""
LEAVE_SECONDS = 2.0


def run_task_manager_process(settings: HostSettings, *, in_background: bool = False) -> str:
    """Run until SIGTERM, SIGINT or a terminal's SIGHUP, on the main thread; returns why it ended.

    Raises HostError, InsecureKeyFile, UnwritableFolder where it cannot begin.
    """
    keys, stop = load_keys(settings), Stop()
    with ExitStack() as stack:
        locked = PidFile(settings.run_dir, "taskmanager", settings.log_dir, settings.storage_dir)
        pid_file = stack.enter_context(contextlib.closing(locked))
        log_to_file(settings, pid_file.state.log_file, in_background=in_background)
        stack.enter_context(stop.on_signals())
        host = _host(settings)
        work_dir = made_work_dir()
        stack.callback(remove_work_dir, work_dir)
        system = stack.enter_context(ActorSystem("host", bind=f"tcp://{host}:0", curve=keys))
        actor: list[Ref] = []
        launcher = LocalLauncher(lambda exited: _tell(actor, exited), work_dir)
        stack.callback(launcher.close)
        starts = _Starts(settings, keys, host, Path(work_dir), f"{system.address}/{HOST}")

        spec = HostSpec(HostId(system.new_id("host")), host, os.getpid(), settings.taskmanager_slots)
        registered = partial(pid_file.update, is_ready=True)
        made = Host(spec, leaders_of(settings), launcher, starts.make, registered, starts.forget)
        actor.append(system.spawn(made, name=HOST))
        system.spawn(Watch(actor[0], stop.request))
        pid_file.update(address=system.address)
        log.info("TaskManager process %d at %s, with %d slots", spec.pid, system.address, spec.slots)
        reason = stop.wait()
        log.info("the TaskManager process ends: %s", reason)
        with contextlib.suppress(Exception):  # it ends, whether the JobManager is there to know it or not
            actor[0].ask(Leave(reason)).result(LEAVE_SECONDS)
        return reason


def _host(settings: HostSettings) -> str:
    """The address of this host for others, in digits. Raises ProcessFailed."""
    try:
        if settings.taskmanager_host:
            return in_digits(settings.taskmanager_host)
        return own_host(f"tcp://{_master(settings)}:{settings.jobmanager_port}")
    except OSError as error:
        what = (
            f"taskmanager.host {settings.taskmanager_host!r}"
            if settings.taskmanager_host
            else f"the JobManager's host {_master(settings)!r}"
        )
        raise ProcessFailed(f"{what} cannot be resolved here: {error}") from error


def _master(settings: HostSettings) -> str:
    """A host that the route to tells by which address this one is reached."""
    return settings.masters[0] if settings.has_successors and settings.masters else settings.jobmanager_host


def _tell(actor: list[Ref], exited: TaskManagerExited) -> None:
    for ref in actor:
        ref.tell(exited)


class _Starts:
    """How TaskManagers of jobs are started on this host. `make` is called by threads of the system's pool."""

    def __init__(self, settings: HostSettings, keys: CurveKeys, host: str, work_dir: Path, host_address: str) -> None:
        """`host_address`: of the Host actor."""
        self._keys = keys
        self._host = host
        self._work_dir = work_dir
        self._host_address = host_address
        self._alone_ms = settings.alone_ms
        self._programs = Programs(settings.storage_dir, keys)

    def make(self, order: LaunchTaskManager, leader: str) -> TaskManagerLaunch:
        """Read and check the job's code, and unpack its files once. Raises ProgramRefused, OSError."""
        made = order.task_manager
        shipped = self._programs.load(made.job_id, order.program)
        folder = self._folder(made.job_id)
        see_work_dir(str(self._work_dir))
        if folder.exists():  # a cleaner of the temporary folder may have taken some
            unpack({name: content for name, content in shipped.files.items() if not (folder / name).exists()}, folder)
        elif shipped.files:
            draft = Path(tempfile.mkdtemp(dir=self._work_dir))
            unpack(shipped.files, draft)
            with contextlib.suppress(OSError):  # another one of the same job was faster
                draft.rename(folder)
        return TaskManagerLaunch(
            job_id=made.job_id,
            index=made.index,
            slots=made.slots,
            job_manager_address=f"{leader}/{JOB_MANAGER}",
            host=self._host,
            curve=self._keys,
            program=shipped.program,
            checkpoints=order.checkpoints,
            state_backend=order.state_backend,
            buffer_timeout_ms=order.buffer_timeout_ms,
            sys_path=(*([str(folder)] if shipped.files else []), *shipped.sys_path),
            warm_up=shipped.warm_up,
            job_name=order.job_name,
            log_levels=LogLevels.of_this_process(),
            slow_step_ms=order.slow_step_ms,
            watermark_warn_ms=order.watermark_warn_ms,
            host_address=self._host_address if self._alone_ms else "",
            alone_ms=self._alone_ms,
        )

    def forget(self, job_id: JobId) -> None:
        """Nothing of the job runs here any more."""
        shutil.rmtree(self._folder(job_id), ignore_errors=True)

    def _folder(self, job_id: JobId) -> Path:
        return self._work_dir / f"code-{job_id.encode().hex()[-64:]}"
