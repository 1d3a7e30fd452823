"""The command line. Only what people type; the work is done elsewhere."""

from __future__ import annotations

import click


@click.group()
@click.version_option(package_name="understudy")
def main() -> None:
    """Understudy: fault-tolerant, stateful stream processing on Spark."""


def _register() -> None:
    from .chaos import chaos
    from .demo import demo
    from .simulate import simulate

    main.add_command(chaos)
    main.add_command(demo)
    main.add_command(simulate)


_register()

__all__ = ["main"]
