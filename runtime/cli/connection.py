"""Which JobManager a command speaks to: the one that is named by address and key file, by options or environment; or
else the one that the working directory's understudy.yaml names, or that of UNDERSTUDY_CONFIG; or else the only one of
this user that runs on this machine (a command about a job asks all that run here for it); or else the one that another
understudy.yaml names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from ...messages import JobSummary
from ..clusters.announcement import Announcement, find_announcements
from ..clusters.remote_cluster import RemoteCluster, find_job, jobs_meant
from ..clusters.remote_errors import RemoteError
from ..clusters.work_dir import where_work_dirs_are
from ..hosts.hosts_client import HostsClient
from ..hosts.settings import HostSettings
from ..hosts.settings_sources import FILE_VARIABLE, LoadedSettings, load_settings
from ..system import CurveKeys
from ..system.remote.address import is_reachable_base
from .output import note

ADDRESS_VARIABLE, KEY_FILE_VARIABLE = "UNDERSTUDY_JOBMANAGER", "UNDERSTUDY_KEY_FILE"
SECONDS = click.FloatRange(0.001, 31_536_000)
SEARCH_SECONDS = 5.0
"""How long each of several JobManagers has to say which jobs it has."""
_MOST_ASKED_AT_ONCE = 64


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--jobmanager`, `--key-file` and `--timeout`."""
    for option in (
        click.option(
            "--timeout",
            type=SECONDS,
            metavar="SECONDS",
            help="How long to wait for an answer.  [default: 30, with savepoints 900]",
        ),
        click.option(
            "--key-file",
            envvar=KEY_FILE_VARIABLE,
            metavar="FILE",
            help=f"The cluster's key file, as `run` prints it.  [env: {KEY_FILE_VARIABLE}]",
        ),
        click.option(
            "--jobmanager",
            envvar=ADDRESS_VARIABLE,
            metavar="tcp://HOST:PORT",
            help=f"Address of the JobManager; without it, the one that runs here.  [env: {ADDRESS_VARIABLE}]",
        ),
    ):
        command = option(command)
    return command


def connect(jobmanager: str | None, key_file: str | None, timeout: float | None) -> RemoteCluster:
    """The client of the JobManager that is meant, not yet started. Raises UsageError and ClickException."""
    if jobmanager is not None and not is_reachable_base(jobmanager.rstrip("/")):
        raise click.UsageError(f"--jobmanager: wanted tcp://host:port, found {jobmanager!r}")
    limits: dict[str, Any] = {}
    if timeout is not None:
        limits = {"answer_timeout_ms": timeout * 1000, "savepoint_timeout_ms": timeout * 1000}
    if jobmanager is None or key_file is None:
        found = _discover(jobmanager, key_file)
        if isinstance(found, HostSettings):
            return HostsClient(found, **limits)
        jobmanager, key_file = found
    return RemoteCluster(jobmanager.rstrip("/"), _load(key_file), **limits)


@contextlib.contextmanager
def connect_to_job(
    job: str, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> Iterator[tuple[RemoteCluster, JobSummary]]:
    """The client of the JobManager that is meant, and the job; of several that run here, the one that has the job.

    Raises UsageError, ClickException and RemoteErrors.
    """
    several = jobmanager is None and key_file is None and _of_this_place(load_settings()) is None
    if several and len(running := find_announcements().running) > 1:
        announcement, summary = _search(running, job, timeout)
        jobmanager, key_file, job = announcement.address, announcement.key_file, summary.job_id
    with connect(jobmanager, key_file, timeout) as cluster:
        jobs = cluster.jobs()
        found = find_job(jobs, job)
        _note_namesakes(jobs, job, found)
        yield cluster, found


def _search(running: Sequence[Announcement], wanted: str, timeout: float | None) -> tuple[Announcement, JobSummary]:
    """The only job that is meant, of all that these JobManagers have."""
    owner = {job: where for where in running for job in _jobs_of(where, timeout)}
    meant = jobs_meant(list(owner), wanted)
    if len(meant) == 1:
        _note_namesakes(list(owner), wanted, meant[0])
        return owner[meant[0]], meant[0]
    if meant:
        raise click.ClickException(
            f"{wanted!r} means several jobs of the JobManagers that run here; say which by its id, or its JobManager "
            "with --jobmanager:\n" + "\n".join(_line_of(job, owner[job]) for job in meant)
        )
    known = "\n".join(_line_of(job, where) for job, where in owner.items()) or "  none"
    raise click.ClickException(
        f"no job of the {len(running)} JobManagers that run here has the id, a prefix of it, or the name {wanted!r}; "
        f"there are:\n{known}"
    )


def _note_namesakes(jobs: Sequence[JobSummary], wanted: str, found: JobSummary) -> None:
    """A job that was chosen because it is the newest of those that have ended."""
    count = sum(job.name == wanted for job in jobs)
    if found.status.is_terminal and found.job_id != wanted and count > 1 and found.name == wanted:
        note(
            f"{count} ended jobs have the name {wanted!r}; this is the newest, {found.job_id}: `understudy list --all` "
            "has the ids of the others"
        )


def jobs_here(but: Announcement) -> list[tuple[Announcement, JobSummary]]:
    """All jobs of the other JobManagers of this user that run on this machine and answer. All together have
    SEARCH_SECONDS, however many of them do not.
    """
    others = [where for where in find_announcements().running if where.address != but.address]
    if not others:
        return []

    def asked(where: Announcement) -> list[tuple[Announcement, JobSummary]]:
        with contextlib.suppress(RemoteError, click.ClickException):
            return [(where, job) for job in _asked(where, SEARCH_SECONDS)]
        return []

    with ThreadPoolExecutor(_MOST_ASKED_AT_ONCE) as threads:
        return [each for found in threads.map(asked, others) for each in found]


def _jobs_of(where: Announcement, timeout: float | None) -> tuple[JobSummary, ...]:
    """None of one that cannot be asked: that is noted, and the others may have the job."""
    try:
        return _asked(where, timeout or SEARCH_SECONDS)
    except RemoteError as error:
        note(f"ignored a JobManager of process {where.pid}: {error}")
        return ()


def _asked(where: Announcement, timeout: float) -> tuple[JobSummary, ...]:
    """Raises RemoteErrors and ClickException."""
    with RemoteCluster(where.address, _load(where.key_file), answer_timeout_ms=1000 * timeout) as cluster:
        return cluster.jobs()


def _discover(address: str | None, key_file: str | None) -> tuple[str, str] | HostSettings:
    """Address and key file of the only one that runs here, of those with this address if one was given; or the settings
    of a cluster whose leader is to be followed.
    """
    if key_file is not None:
        raise click.UsageError("--key-file needs --jobmanager, the address that the key belongs to")
    found = find_announcements()
    for what in found.unreadable:
        note(f"ignored {what}")
    if address is not None:
        meant = [each for each in found.running if each.address == address.rstrip("/")]
        if not meant:
            raise click.UsageError(f"--jobmanager {address} needs --key-file: it was not started here by this user")
        return meant[0].address, meant[0].key_file
    loaded = load_settings()
    running = found.running
    mine = [each for each in running if loaded.file is not None and each.key_file == loaded.settings.key_file]
    if (here := _of_this_place(loaded)) is not None and running and not mine:
        note(f"asks the cluster of {here}; what runs here is asked with --jobmanager:\n{_lines(running)}")
    if here is not None or mine or (loaded.file is not None and not running):
        return _named_by(loaded.settings, mine)
    if len(running) == 1:
        return running[0].address, running[0].key_file
    if running:
        raise _several(running)
    folder = where_work_dirs_are()
    looked = "no temporary folder can be used: set TMPDIR" if folder is None else f"looked in {folder}"
    raise click.ClickException(
        f"no JobManager of this user runs here ({looked}): start one with `understudy run`, "
        "or name one with --jobmanager and --key-file, or in an understudy.yaml"
    )


def _of_this_place(loaded: LoadedSettings) -> Path | None:
    """The file that names the cluster of whoever works here: no other one is taken for it, also if it is down."""
    named = loaded.file is not None and (FILE_VARIABLE in os.environ or loaded.file.parent == Path.cwd())
    return loaded.file if named else None


def _named_by(settings: HostSettings, running: Sequence[Announcement]) -> tuple[str, str] | HostSettings:
    """Of a cluster with successors it is never one that runs here: that one may have been deposed, and stand still."""
    if settings.has_successors:
        _load(settings.key_file)
        return settings
    if len(running) > 1:
        raise _several(running)
    return running[0].address if running else settings.jobmanager_address, settings.key_file


def _several(running: Sequence[Announcement]) -> click.ClickException:
    return click.ClickException(f"several JobManagers run here; say which with --jobmanager:\n{_lines(running)}")


def _lines(running: Sequence[Announcement]) -> str:
    return "\n".join(f"  {each.address}  process {each.pid}  key {each.key_file}" for each in running)


def _line_of(job: JobSummary, where: Announcement) -> str:
    return f"  {job.job_id} ({job.name}, {job.status.value})  --jobmanager {where.address}  process {where.pid}"


def _load(path: str) -> CurveKeys:
    try:
        return CurveKeys.load(path)
    except OSError as error:
        raise click.ClickException(f"the key file {path} cannot be read: {error.strerror or error}") from error
