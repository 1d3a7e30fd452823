"""`understudy jobmanager` and `taskmanager`: the processes that stand alone; in the foreground, as systemd and
containers want them, or in the background.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from ..hosts.background import start_in_background, stop_processes
from ..hosts.machines import in_words
from ..hosts.settings_sources import LoadedSettings
from ..hosts.standing_process import Role, running_processes
from .cluster_settings import settings_options
from .output import note, print_json

_WAYS = ("detach", "stop", "status", "background")
_RUN = (None, "background")
"""The process itself is wanted, in this one."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What is to be done comes as `what`; None: run it here."""

    @functools.wraps(command)
    def run(as_json: bool, **rest: Any) -> Any:
        wanted = [name for name in _WAYS if rest.pop(name)]
        if len(wanted) > 1:
            raise click.UsageError(f"wanted one of --detach, --stop and --status, found --{' and --'.join(wanted)}")
        if as_json and wanted != ["status"]:
            raise click.UsageError("--json goes with --status")
        return command(what=wanted[0] if wanted else None, as_json=as_json, **rest)

    decorated: Callable[..., Any] = run
    for option in (
        click.option("--json", "as_json", is_flag=True, help="With --status: print JSON."),
        click.option("--status", is_flag=True, help="Say which run on this host, and start none."),
        click.option("--stop", is_flag=True, help="End those that run on this host."),
        click.option("--in-background", "background", is_flag=True, hidden=True),
        click.option("--detach", is_flag=True, help="Start it in the background."),
    ):
        decorated = option(decorated)
    return decorated


@click.command()
@_options
@settings_options
def jobmanager(loaded: LoadedSettings, what: str | None, as_json: bool) -> None:
    """Run a JobManager on this host, until SIGTERM or Ctrl-C.

    It listens at jobmanager.host and jobmanager.port, and logs to a file in log.dir. Jobs come by `understudy submit`.
    """
    if what not in _RUN:
        _do("jobmanager", what, loaded, as_json)
    else:  # what runs is loaded here only: whoever starts it in the background needs nothing of it
        from ..hosts.jobmanager_process import run_job_manager

        _run(run_job_manager, loaded, what)


@click.command()
@_options
@settings_options
def taskmanager(loaded: LoadedSettings, what: str | None, as_json: bool) -> None:
    """Run a TaskManager process on this host, until SIGTERM or Ctrl-C.

    It offers taskmanager.slots to all jobs of the JobManager that the settings name, and logs to a file in log.dir.
    """
    if what not in _RUN:
        _do("taskmanager", what, loaded, as_json)
    else:
        from ..hosts.taskmanager_process import run_task_manager_process

        _run(run_task_manager_process, loaded, what)


def _run(process: Callable[..., str], loaded: LoadedSettings, what: str | None) -> None:
    try:
        reason = process(loaded.settings, in_background=what is not None)
    except Exception as error:
        if what is not None and sys.stderr is not sys.__stderr__:  # whoever has started it reads what it began with
            print(error, file=sys.__stderr__, flush=True)
        raise
    note(f"ended: {reason}")


def _do(role: Role, what: str | None, loaded: LoadedSettings, as_json: bool) -> None:
    settings = loaded.settings
    match what:
        case "detach":
            note(f"started {start_in_background(role, loaded)}")
        case "stop":
            note(in_words(role, stop_processes(settings, role)))
        case _:
            running = running_processes(settings.run_dir, role)
            if as_json:
                print_json(running)
            else:
                click.echo("\n".join(map(str, running)) or f"no {role} runs here")
            if not running:
                raise SystemExit(1)
