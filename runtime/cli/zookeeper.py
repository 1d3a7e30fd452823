"""`understudy zookeeper` and `understudy key`: what a trial of high availability needs."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import click

from ..high_availability.errors import NoZooKeeperHere
from ..high_availability.settings import KEY_FILE, QUORUM, RECOVERY_MODE
from ..high_availability.trial_zookeeper import Peer, TrialZooKeeper
from ..system import CurveKeys
from .groups import CommandGroup
from .interrupts import Interrupts
from .output import note, told


@click.group(cls=CommandGroup)
def zookeeper() -> None:
    """A ZooKeeper server for a trial, from the jars that come with PySpark."""


@zookeeper.command()
@click.option("--port", default=2181, show_default=True, type=click.IntRange(1, 65_535), help="On loopback.")
@click.option(
    "--folder", default="zookeeper", show_default=True, metavar="DIR", help="Where its data is, for the next start too."
)
@told
def start(port: int, folder: str) -> None:
    """Run one server until Ctrl-C or SIGTERM. It listens on loopback and asks for no password: not for production."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise click.ClickException(f"port {port} cannot be used: {error.strerror}; give another one") from error
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        where = Path(folder).resolve()
        raise click.ClickException(f"--folder: {where} cannot be made: {error.strerror}; name another one") from error
    with Interrupts() as interrupts:
        try:
            server = TrialZooKeeper(Path(folder).resolve(), Peer(port, 0, 0))
            try:
                server.start()
                server.await_ready()
                click.echo(f"-D {RECOVERY_MODE}=zookeeper -D {QUORUM}={server.address}")
                note(f"ZooKeeper runs as process {server.pid}, with its data in {server.folder}; Ctrl-C ends it")
                code = server.wait()
            finally:
                server.close()
        except NoZooKeeperHere as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            raise SystemExit(interrupts.exit_code) from None
    raise click.ClickException(f"ZooKeeper ended with exit code {code}: see {server.folder}/log")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@told
def key(file: str) -> None:
    """Write a new cluster key to FILE, which nobody else can read. All JobManagers of a cluster need the same."""
    try:
        CurveKeys.generate().save(file)
    except FileExistsError as error:
        raise click.ClickException(f"{file} is there already: remove it, or name another file") from error
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error
    note(f"wrote {file}: copy it, with mode 0600, to each machine of the cluster, for {KEY_FILE}")
