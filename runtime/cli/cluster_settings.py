"""The options `--config` and `-D`, of the commands about processes that stand alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from ..hosts.settings_sources import FILE_VARIABLE, LoadedSettings, load_settings, use_encryption_keys
from .option_values import config_of
from .output import note, told


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command takes what they come to as `loaded`. Wrong settings end it with exit code 1."""

    @functools.wraps(command)
    @told
    def run(config_file: str | None, flags: dict[str, str], **rest: Any) -> Any:
        loaded: LoadedSettings = load_settings(config_file, flags)
        for each in loaded.notes:
            note(f"note: {each}")
        use_encryption_keys(loaded.settings)
        return command(loaded=loaded, **rest)

    decorated: Callable[..., Any] = run
    for option in (
        click.option(
            "-D",
            "flags",
            metavar="KEY=VALUE",
            multiple=True,
            callback=config_of,
            help="A setting, before those of the environment and the file.",
        ),
        click.option(
            "--config",
            "config_file",
            metavar="FILE",
            help=f"The settings.  [env: {FILE_VARIABLE}; default: understudy.yaml, here or as `config` says]",
        ),
    ):
        decorated = option(decorated)
    return decorated
