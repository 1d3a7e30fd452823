"""`understudy cluster`: all processes of a cluster, on all of its hosts. Flink: start-cluster.sh, stop-cluster.sh."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..hosts.cluster_status import ClusterStatus, look
from ..hosts.keys import make_key, receive_key
from ..hosts.machines import Machines, Outcome, at_once, is_here
from ..hosts.settings_sources import LoadedSettings, no_file
from .cluster_settings import settings_options
from .groups import CommandGroup
from .jobs import WIDE, status_in_words
from .output import note, print_json


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Start, stop and look at all processes of a cluster.

    Which hosts: cluster.masters and cluster.workers of the settings, or the files masters and workers beside them; else
    this one. Other hosts are reached by ssh (cluster.ssh), and need the settings at the same path, and the key.
    """


@cluster.command()
@settings_options
def start(loaded: LoadedSettings) -> None:
    """Start the JobManager, and then the TaskManager processes; those that run already go on.

    The first time it also makes the key file.
    """
    machines = Machines(loaded)
    places = machines.places()
    if not machines.shares_folder():
        raise click.ClickException(
            "storage.dir is not set, and there are several hosts: set it to a folder that all of them share, or a URL "
            "such as s3://bucket/folder"
        )
    if make_key(loaded.settings):
        note(f"made the key file {loaded.settings.key_file}")
    outcomes, missing = machines.split(places)
    outcomes += at_once(machines.start, [place for place in missing if place.role == "jobmanager"])
    if all(each.is_done for each in outcomes):
        outcomes += at_once(machines.start, [place for place in missing if place.role == "taskmanager"])
        outcomes = machines.still_there(outcomes)
    _conclude("start", outcomes)
    if loaded.is_default:
        note(
            f"it has the default settings (`understudy config`): there is {no_file()}. If others were meant, end it "
            "here with `understudy cluster stop`, and start it where they are, or with --config"
        )


@cluster.command()
@settings_options
def stop(loaded: LoadedSettings) -> None:
    """End the TaskManager processes, and then the JobManager; the jobs end with it."""
    machines = Machines(loaded)
    places = list(dict.fromkeys(machines.places()))
    outcomes = at_once(machines.stop, [place for place in places if place.role == "taskmanager"])
    outcomes += at_once(machines.stop, [place for place in places if place.role == "jobmanager"])
    _conclude("stop", outcomes)


@cluster.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def status(loaded: LoadedSettings, as_json: bool) -> None:
    """Show which processes are alive and which are not, and which JobManager leads.

    Exit code 1 if something is missing, or nobody leads.
    """
    found = look(Machines(loaded), loaded.settings)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if not found.is_whole:
        raise SystemExit(1)


@cluster.command()
@click.option("--send", is_flag=True, help="Copy it to the other hosts by ssh; one that has a key keeps its own.")
@click.option("--receive", is_flag=True, hidden=True)
@settings_options
def key(loaded: LoadedSettings, send: bool, receive: bool) -> None:
    """Make the cluster's key file, unless there is one, and print its path. Whoever can read it can do everything."""
    if receive:
        receive_key(loaded.settings, sys.stdin.read())
        return
    if make_key(loaded.settings):
        note("made a new key")
    click.echo(loaded.settings.key_file)
    if send:
        machines = Machines(loaded)
        outcomes = [machines.send_key(host) for host in machines.hosts() if not is_here(host)]
        for each in outcomes:
            note(f"{each.place.host}: {'has the key' if each.is_done else each.text}")
        if not all(each.is_done for each in outcomes):
            raise SystemExit(1)


def _conclude(what: str, outcomes: list[Outcome]) -> None:
    for each in outcomes:
        note(f"{each.place.host}: {'' if each.is_done else 'FAILED: '}{each.text}")
    failed = sum(not each.is_done for each in outcomes)
    if failed:
        raise click.ClickException(f"{what}: {failed} of {len(outcomes)} failed, as said above")


def _print(found: ClusterStatus) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("role", "host", "process", "state", "free slots", "log"):
        table.add_column(name, no_wrap=True)
    for each in found.processes:
        slots = f"{each.free_slots} of {each.slots}" if each.slots else "-"
        row = (each.role, Text(each.host), str(each.pid or "-"), each.state, slots, Text(each.log_file or "-"))
        table.add_row(*row)
    Console(width=WIDE, markup=False, highlight=False, emoji=False).print(table, crop=False)
    if found.no_answer:
        note(f"no leader: {found.no_answer}")
    elif found.leader is not None and found.leader.pid is None:
        note(f"the leader, {found.leader.address}, is none of these processes: see cluster.masters")
    for each in found.processes:
        if each.trouble:
            note(f"{each.role} on {each.host}: {each.trouble}")
    for job in found.jobs:
        tasks = f"{job.tasks_running} of {job.tasks_total} tasks run"
        note(f"job {job.job_id} ({job.name}) is {status_in_words(job)}, {tasks}")
    for line in found.waiting:
        note(f"waits: {line}")
