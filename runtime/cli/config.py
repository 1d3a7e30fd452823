"""`understudy config`: each setting of a cluster, its value, and where that comes from."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...messages.shown_url import url_shown
from ..hosts.settings import SETTINGS
from ..hosts.settings_sources import LoadedSettings, nearest
from .cluster_settings import settings_options
from .jobs import WIDE
from .output import note, print_json


@click.command()
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--changed", is_flag=True, help="Only what is not a default.")
@click.option("--help-text", "explain", is_flag=True, help="Also what each means, what it may be, and its variable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def config(loaded: LoadedSettings, keys: tuple[str, ...], changed: bool, explain: bool, as_json: bool) -> None:
    """The settings of the processes on this host, and where each value comes from.

    With KEY, those whose key begins with it.

    Flags (-D) come before the environment, that before the file, that before the defaults.
    """
    for key in keys:
        if not any(each.startswith(key) for each in SETTINGS):
            close = nearest(key, SETTINGS)
            hint = f"did you mean {close!r}?" if close else "`understudy config` lists all"
            raise click.UsageError(f"there is no setting that begins with {key!r}; {hint}")
    chosen = {
        key: found
        for key, found in loaded.found.items()
        if (not keys or key.startswith(keys)) and not (changed and found.origin == "default")
    }
    if as_json:
        print_json({key: {"value": _shown(found.value), "origin": found.origin} for key, found in chosen.items()})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("setting", "value", "from", *(("variable", "wanted", "meaning") if explain else ())):
        table.add_column(name, no_wrap=True)
    for key, found in chosen.items():
        value = " ".join(found.value) if isinstance(found.value, tuple) else str(_shown(found.value))
        row = [Text(key), Text(value or "-"), Text(found.origin)]
        if explain:
            setting = SETTINGS[key]
            row += [Text(setting.variable), Text(setting.kind.wanted), Text(setting.text)]
        table.add_row(*row)
    Console(width=WIDE, markup=False, highlight=False, emoji=False).print(table, crop=False)
    note(f"file: {loaded.file}" if loaded.file else "there is no understudy.yaml here; see `understudy config --help`")


def _shown(value: Any) -> Any:
    """Without the password of a URL."""
    return url_shown(value) if isinstance(value, str) else value
