"""Which JobManager a command speaks to: the one that is named by address and key file, by options or environment, or
else the only one of this user that runs on this machine, or else the one that an understudy.yaml names; a command
about a job asks all that run here for it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from ...messages import JobSummary
from ..clusters.announcement import Announcement, find_announcements
from ..clusters.remote_cluster import RemoteCluster, jobs_meant
from ..clusters.remote_errors import RemoteError
from ..hosts.settings import HostSettings
from ..hosts.settings_sources import load_settings
from ..system import CurveKeys
from ..system.remote.address import is_reachable_base
from .output import note

ADDRESS_VARIABLE, KEY_FILE_VARIABLE = "UNDERSTUDY_JOBMANAGER", "UNDERSTUDY_KEY_FILE"
SEARCH_SECONDS = 5.0
"""How long each of several JobManagers has to say which jobs it has."""


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--jobmanager`, `--key-file` and `--timeout`."""
    for option in (
        click.option(
            "--timeout",
            type=click.FloatRange(0.001, 31_536_000),
            metavar="SECONDS",
            help="How long to wait for an answer.  [default: 30, with savepoints 900]",
        ),
        click.option(
            "--key-file",
            envvar=KEY_FILE_VARIABLE,
            metavar="FILE",
            help=f"The key that `run` has printed.  [env: {KEY_FILE_VARIABLE}]",
        ),
        click.option(
            "--jobmanager",
            envvar=ADDRESS_VARIABLE,
            metavar="tcp://HOST:PORT",
            help=f"Its address; without it, the one that runs here.  [env: {ADDRESS_VARIABLE}]",
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
            from ..hosts.standalone_cluster import StandaloneCluster  # it loads what submitting a job takes

            return StandaloneCluster(found, **limits)
        jobmanager, key_file = found
    return RemoteCluster(jobmanager.rstrip("/"), _load(key_file), **limits)


@contextlib.contextmanager
def connect_to_job(
    job: str, jobmanager: str | None, key_file: str | None, timeout: float | None
) -> Iterator[tuple[RemoteCluster, JobSummary]]:
    """The client of the JobManager that is meant, and the job; of several that run here, the one that has the job.

    Raises UsageError, ClickException and RemoteErrors.
    """
    if jobmanager is None and key_file is None and len(running := find_announcements().running) > 1:
        announcement, summary = _search(running, job, timeout)
        jobmanager, key_file, job = announcement.address, announcement.key_file, summary.job_id
    with connect(jobmanager, key_file, timeout) as cluster:
        yield cluster, cluster.find(job)


def _search(running: Sequence[Announcement], wanted: str, timeout: float | None) -> tuple[Announcement, JobSummary]:
    """The only job that is meant, of all that these JobManagers have."""
    owner = {job: where for where in running for job in _jobs_of(where, timeout)}
    meant = jobs_meant(list(owner), wanted)
    if len(meant) == 1:
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


def _jobs_of(where: Announcement, timeout: float | None) -> tuple[JobSummary, ...]:
    """None of one that cannot be asked: that is noted, and the others may have the job."""
    try:
        with RemoteCluster(
            where.address, _load(where.key_file), answer_timeout_ms=1000 * (timeout or SEARCH_SECONDS)
        ) as cluster:
            return cluster.jobs()
    except RemoteError as error:
        note(f"ignored a JobManager of process {where.pid}: {error}")
        return ()


def _discover(address: str | None, key_file: str | None) -> tuple[str, str] | HostSettings:
    """Address and key file of the only one that runs here, of those with this address if one was given; or the settings
    of a cluster whose leader is to be followed.
    """
    if key_file is not None:
        raise click.UsageError("--key-file needs --jobmanager, the address that the key belongs to")
    found = find_announcements()
    for what in found.unreadable:
        note(f"ignored {what}")
    meant = [each for each in found.running if address is None or each.address == address.rstrip("/")]
    if len(meant) > 1 and (loaded := load_settings()).file is not None:
        meant = [each for each in meant if each.key_file == loaded.settings.key_file] or meant
    if len(meant) == 1:
        return meant[0].address, meant[0].key_file
    if meant:
        raise click.ClickException(
            "several JobManagers run here; say which with --jobmanager:\n" + "\n".join(_line(each) for each in meant)
        )
    if address is not None:
        raise click.UsageError(f"--jobmanager {address} needs --key-file: it was not started here by this user")
    if (loaded := load_settings()).file is not None:
        if loaded.settings.has_successors:
            _load(loaded.settings.key_file)
            return loaded.settings
        return loaded.settings.jobmanager_address, loaded.settings.key_file
    raise click.ClickException(
        f"no JobManager of this user runs here (looked in {tempfile.gettempdir()}): start one with `understudy run`, "
        "or name one with --jobmanager and --key-file, or in an understudy.yaml"
    )


def _line(found: Announcement) -> str:
    return f"  {found.address}  process {found.pid}  key {found.key_file}"


def _line_of(job: JobSummary, where: Announcement) -> str:
    return f"  {job.job_id} ({job.name}, {job.status.value})  --jobmanager {where.address}  process {where.pid}"


def _load(path: str) -> CurveKeys:
    try:
        return CurveKeys.load(path)
    except OSError as error:
        raise click.ClickException(f"the key file {path} cannot be read: {error.strerror or error}") from error
