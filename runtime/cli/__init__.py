"""The command line. Only what people type; the work is done elsewhere."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from ..lazy_names import no_collections
from .closed_streams import open_closed_streams
from .groups import CommandGroup

_COMMANDS = {
    "Programs": {
        "run": ("run", "Run a program on this machine until its job ends."),
        "submit": ("submit", "Submit a program to a running cluster."),
        "info": ("info", "The plan of a program: vertices, operators, states, edges."),
        "demo": ("demo", "A job whose TaskManagers are killed, with an exact result."),
    },
    "Jobs": {
        "list": ("jobs", "The jobs of a JobManager."),
        "top": ("top", "What jobs do now: rates, time, checkpoints, restarts."),
        "dashboard": ("dashboard", "Serve the page and the REST interface."),
        "logs": ("logs", "What the TaskManagers of a job have logged lately."),
        "savepoint": ("savepoint", "Take a savepoint of a job; or remove one."),
        "stop": ("savepoint", "Let a job take a savepoint and finish."),
        "cancel": ("jobs", "End a job at once."),
        "checkpoint": ("savepoint", "Take a checkpoint of a job now."),
        "checkpoints": ("jobs", "Statistics of a job's last checkpoints."),
        "watermarks": ("watermarks", "How far event time is in a job, and what holds it back."),
        "back-pressure": ("metrics", "How often the tasks of a job wait for those behind them."),
        "metrics": ("metrics", "Figures of a job: where its time goes, records, bytes."),
        "flame-graph": ("metrics", "What runs in the tasks of a vertex."),
        "state": ("state", "Look into savepoints and checkpoints; compare, verify, export."),
    },
    "Clusters": {
        "cluster": ("cluster", "Start, stop and look at the processes of all hosts."),
        "config": ("config", "The settings of the processes on this host."),
        "jobmanager": ("standing", "Run a JobManager on this host."),
        "taskmanager": ("standing", "Run a TaskManager process on this host."),
        "key": ("zookeeper", "Write a new cluster key to a file."),
        "zookeeper": ("zookeeper", "A ZooKeeper server for a trial."),
    },
    "Tests": {
        "simulate": ("simulate", "Run whole clusters on virtual time, and break them."),
        "chaos": ("chaos", "Inject faults into a job on real processes."),
    },
}
"""By what they are about: in which module each is, and what it does. The modules are imported when they are wanted, so
that none waits for what only others need; and none at all to list them.
"""

_HOMES = {name: home for commands in _COMMANDS.values() for name, (home, _) in commands.items()}

_ELSEWHERE = {
    "status": ["list", "top"],
    "jobs": ["list"],
    "ps": ["list"],
    "ls": ["list"],
    "kill": ["cancel"],
    "plan": ["info"],
    "explain": ["info"],
    "start": ["run", "cluster start"],
}
"""Words of other command lines, with what they are called here."""


class _Commands(CommandGroup):
    def main(self, *args: Any, **options: Any) -> Any:
        open_closed_streams()
        return super().main(*args, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _HOMES.get(cmd_name)
        if home is None:
            return None
        with no_collections():
            module = import_module(f".{home}", __name__)
        command: click.Command = getattr(module, "list_jobs" if cmd_name == "list" else cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, told) for name, (_, told) in commands.items()])

    def instead_of(self, name: str) -> list[str]:
        if name.partition(":")[0].endswith(".py"):
            return [f"run {name}"]
        close = get_close_matches(name, [*_HOMES, *_ELSEWHERE], 1)
        return _ELSEWHERE.get(close[0], close) if close else []


@click.group(cls=_Commands)
@click.version_option(package_name="understudy")
def main() -> None:
    """Understudy: fault-tolerant, stateful stream processing in Python.

    Exit codes: 0 it is done; 1 it failed, and the text on standard error says why; 2 wrong usage; 130 Ctrl-C.
    """


__all__ = ["main"]
