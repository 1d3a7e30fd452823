"""The command line. Only what people type; the work is done elsewhere."""

from __future__ import annotations

from importlib import import_module

import click

from ..lazy_names import no_collections
from .groups import CommandGroup

_HOMES = {
    "back-pressure": "metrics",
    "cancel": "jobs",
    "chaos": "chaos",
    "checkpoint": "savepoint",
    "checkpoints": "jobs",
    "cluster": "cluster",
    "config": "config",
    "dashboard": "dashboard",
    "demo": "demo",
    "flame-graph": "metrics",
    "info": "info",
    "jobmanager": "standing",
    "key": "zookeeper",
    "list": "jobs",
    "logs": "logs",
    "metrics": "metrics",
    "run": "run",
    "savepoint": "savepoint",
    "simulate": "simulate",
    "state": "state",
    "stop": "savepoint",
    "submit": "submit",
    "taskmanager": "standing",
    "top": "top",
    "watermarks": "watermarks",
    "zookeeper": "zookeeper",
}
"""In which module each command is; imported when it is wanted, so that none waits for what only others need."""


class _Commands(CommandGroup):
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

    def instead_of(self, name: str) -> list[str]:
        return [f"run {name}"] if name.partition(":")[0].endswith(".py") else []


@click.group(cls=_Commands)
@click.version_option(package_name="understudy")
def main() -> None:
    """Understudy: fault-tolerant, stateful stream processing in Python.

    Exit codes: 0 it is done; 1 it failed, and the text on standard error says why; 2 wrong usage; 130 Ctrl-C.
    """


__all__ = ["main"]
