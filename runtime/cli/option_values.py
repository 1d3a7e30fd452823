"""What the values of options may be, for several commands."""

from __future__ import annotations

import click

POSITIVE = click.IntRange(1)


def config_of(_context: click.Context, _option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """`-D key=value` as a dictionary; a click callback."""
    config: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"wanted key=value, found {pair!r}")
        config[key] = value
    return config
