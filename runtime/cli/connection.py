"""Which JobManager a command speaks to: the one that is named by address and key file, by options or environment, or
else the only one of this user that runs on this machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import click

from ..clusters.announcement import Announcement, find_announcements
from ..clusters.remote_cluster import RemoteCluster
from ..system import CurveKeys
from ..system.address import is_reachable_base
from .output import note

ADDRESS_VARIABLE, KEY_FILE_VARIABLE = "UNDERSTUDY_JOBMANAGER", "UNDERSTUDY_KEY_FILE"


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--jobmanager`, `--key-file` and `--timeout`."""
    for option in (
        click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
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
    if jobmanager is None or key_file is None:
        jobmanager, key_file = _discover(jobmanager, key_file)
    limits = {} if timeout is None else {"answer_seconds": timeout, "savepoint_seconds": timeout}
    return RemoteCluster(jobmanager.rstrip("/"), _load(key_file), **limits)


def _discover(address: str | None, key_file: str | None) -> tuple[str, str]:
    """Address and key file of the only one that runs here, of those with this address if one was given."""
    if key_file is not None:
        raise click.UsageError("--key-file needs --jobmanager: whose key is it?")
    found = find_announcements()
    for what in found.unreadable:
        note(f"ignored {what}")
    meant = [each for each in found.running if address is None or each.address == address.rstrip("/")]
    if len(meant) == 1:
        return meant[0].address, meant[0].key_file
    if meant:
        raise click.ClickException(
            "several JobManagers run here; say which with --jobmanager:\n" + "\n".join(_line(each) for each in meant)
        )
    if address is not None:
        raise click.UsageError(f"--jobmanager {address} needs --key-file: it was not started here by this user")
    raise click.ClickException(
        f"no JobManager of this user runs here (looked in {tempfile.gettempdir()}): start one with `understudy run`, "
        "or name one with --jobmanager and --key-file"
    )


def _line(found: Announcement) -> str:
    return f"  {found.address}  process {found.pid}  key {found.key_file}"


def _load(path: str) -> CurveKeys:
    try:
        return CurveKeys.load(path)
    except OSError as error:
        raise click.ClickException(f"the key file {path} cannot be read: {error.strerror or error}") from error
