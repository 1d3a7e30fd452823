"""TrialZooKeeper: a real ZooKeeper server for a trial or a test, from the jars that come with PySpark.

For `understudy zookeeper start`, and for our tests, which also make ensembles of three of it. It listens on loopback
and asks nobody for a password: none for production.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import NoZooKeeperHere

START_SECONDS = 60.0
TICK_MS = 200
"""ZooKeeper looks for expired sessions so often."""

_SMALL = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_ALONE = "org.apache.zookeeper.server.ZooKeeperServerMain"
_ONE_OF_SEVERAL = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@dataclass(frozen=True, slots=True)
class Peer:
    """Where one server of an ensemble listens, on loopback."""

    client_port: int
    quorum_port: int
    election_port: int


class TrialZooKeeper:
    """One server, as a process of this machine; `folder` keeps its data. Raises NoZooKeeperHere."""

    def __init__(
        self,
        folder: str | Path,
        peer: Peer,
        number: int = 1,
        ensemble: Sequence[Peer] = (),
        *,
        more: Sequence[str] = (),
        java_options: Sequence[str] = (),
    ) -> None:
        """`ensemble`: all servers, this one as `number` of them, from 1; empty for one alone. `more`: lines of its
        configuration.
        """
        self.folder = Path(folder)
        self.address = f"127.0.0.1:{peer.client_port}"
        self._port = peer.client_port
        kind = _ONE_OF_SEVERAL if ensemble else _ALONE
        self._command = [_java(), *_SMALL, *java_options, "-cp", _class_path(self.folder), kind]
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "myid").write_text(f"{number}\n")
        (self.folder / "zoo.cfg").write_text(_configuration(self.folder, peer, ensemble, more))
        (self.folder / "log4j2.properties").write_text(_LOGGING)

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    def start(self) -> None:
        """Start it, again if it was killed; returns at once. `await_ready` waits for it."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, str(self.folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C is its owner's affair
            )

    def await_ready(self, seconds: float = START_SECONDS) -> None:
        """Until it serves clients. Raises NoZooKeeperHere when it has ended, or takes longer than this."""
        assert self._process is not None, "it was not started"
        until = time.monotonic() + seconds
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > until:
                how = "does not answer" if self._process.poll() is None else f"ended with {self._process.poll()}"
                said = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
                raise NoZooKeeperHere(f"ZooKeeper at {self.address} {how}; its last words: {' | '.join(said)}")
            time.sleep(0.02)

    def kill(self) -> None:
        """As a crash does it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it, if it runs; its data stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self.kill()

    def wait(self) -> int:
        """Until it ends by itself; returns its exit code."""
        assert self._process is not None, "it was not started"
        return self._process.wait()

    def _serves(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(b"srvr")
                return b"Mode:" in connection.recv(4096)
        except OSError:
            return False


def free_peers(count: int) -> list[Peer]:
    """With ports that nobody uses now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(3 * count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        ports = [int(probe.getsockname()[1]) for probe in probes]
    return [Peer(*ports[index : index + 3]) for index in range(0, 3 * count, 3)]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java") if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise NoZooKeeperHere(f"ZooKeeper needs Java, and there is none {where} (Debian: apt-get install default-jre)")
    return found


def _class_path(folder: Path) -> str:
    found = importlib.util.find_spec("pyspark")
    places = [] if found is None else list(found.submodule_search_locations or ())
    jars = next(
        (Path(place) / "jars" for place in places if list((Path(place) / "jars").glob("zookeeper-3*.jar"))), None
    )
    if jars is None:
        raise NoZooKeeperHere(
            'the jars of ZooKeeper come with PySpark, and it is not installed here: pip install "understudy[spark]"'
        )
    return f"{folder}:{jars}/*"


def _configuration(folder: Path, peer: Peer, ensemble: Sequence[Peer], more: Sequence[str]) -> str:
    servers = [
        f"server.{number}=127.0.0.1:{each.quorum_port}:{each.election_port}" for number, each in enumerate(ensemble, 1)
    ]
    lines = [
        f"dataDir={folder}",
        f"clientPort={peer.client_port}",
        "clientPortAddress=127.0.0.1",
        f"tickTime={TICK_MS}",
        "initLimit=50",
        "syncLimit=10",
        "maxSessionTimeout=60000",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr",
        *servers,
        *more,
    ]
    return "\n".join(lines) + "\n"


_LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
"""
