"""`understudy dashboard`: the page of a JobManager that runs elsewhere, or of jobs that have ended, until Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import threading
import webbrowser

import click

from ..api.errors import InvalidSetting
from ..clusters.web import asgi_app
from ..connectors.errors import MissingExtra
from ..web.binding import check_binding, is_loopback
from ..web.server import WebServer
from .connection import connect, connection_options
from .output import note, told

DEFAULT_PORT = 8081
"""Flink's."""


@click.command()
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65_535), help="0: any.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; one that other machines reach needs --token.",
)
@click.option("--token", envvar="UNDERSTUDY_WEB_TOKEN", help="The token that readers must send; `new` makes one.")
@click.option(
    "--history",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Jobs that have ended, as a cluster's history_dir has kept them.",
)
@click.option("--history-only", is_flag=True, help="No JobManager: only the jobs of --history.")
@click.option("--read-only", is_flag=True, help="No savepoint, no stop, no cancel.")
@click.option("--open", "is_to_open", is_flag=True, help="Open the page in this machine's browser.")
@connection_options
@told
def dashboard(
    port: int,
    host: str,
    token: str | None,
    history: str | None,
    history_only: bool,
    read_only: bool,
    is_to_open: bool,
    jobmanager: str | None,
    key_file: str | None,
    timeout: float | None,
) -> None:
    """Serve the page and the REST interface of a JobManager, until Ctrl-C. Its address is printed."""
    if history_only and history is None:
        raise click.UsageError("--history-only needs --history DIR")
    token = secrets.token_urlsafe(24) if token == "new" else token
    with contextlib.ExitStack() as open_:
        cluster = None if history_only else open_.enter_context(connect(jobmanager, key_file, timeout))
        try:
            check_binding(host, token)
            app = asgi_app(cluster, history=history, token=token, read_only=read_only)
            server = open_.enter_context(WebServer(app, host, port, token))
        except (InvalidSetting, MissingExtra, OSError) as error:
            raise click.ClickException(str(error)) from error
        address = f"{server.url}#token={token}" if token else server.url
        click.echo(address)
        note("Ctrl-C ends it" + ("" if is_loopback(host) else "; answers are not encrypted: put TLS in front"))
        if is_to_open:
            webbrowser.open(address)
        threading.Event().wait()
