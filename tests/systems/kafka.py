"""A Kafka broker of this machine: one node of KRaft, from the jars of Maven Central, on free loopback ports.

The jars are fetched once per user, into ~/.cache/understudy-tests. The broker has two listeners: one for everybody, and
one for ALICE alone (SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512). It can be stopped, killed and started again: ports and
log stay. The topics that a test makes, and clients, are at home in the tests.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from . import QUICK_JAVA, SystemMissing, given, maven
from .with_parent import with_parent

VERSION = "4.4.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "understudy-tests"

ALICE = ("alice", "alice-secret")
"""The one user of the listener that wants a login, and the password."""

_START_S = 90


def jars() -> Path:
    """The folder of the broker's jars; fetched if this user has not got them. Raises SystemMissing."""
    return maven.fetch("Kafka", [f"org.apache.kafka:kafka_2.13:{VERSION}"], CACHE / f"kafka-{VERSION}")


class KafkaBroker:
    """Made stopped; `start` it. `settings`: more lines of its configuration. `quick`: to start, not to work."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, *, quick: bool = True) -> None:
        self._folder, self._options = folder, QUICK_JAVA if quick else ()
        self._process: subprocess.Popen[bytes] | None = None
        with ExitStack() as reserved:
            ports = [_free_port(reserved) for _ in range(3)]
        self.port, self.secured_port, controller = ports
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.secured = f"127.0.0.1:{self.secured_port}"
        """Of the listener that wants a login."""
        self._settings = self._configuration(controller) | dict(settings or {})

    def start(self) -> None:
        """Start it, for the first time or again, and wait until it answers."""
        assert self._process is None, "the broker runs"
        libs = jars()
        properties = self._folder / "server.properties"
        if not properties.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            properties.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
            self._format(libs, properties)
        command = ["-Xmx512m", *self._options, "-cp", f"{libs}/*", "kafka.Kafka", str(properties)]
        with open(self._folder / "output", "ab") as output:
            self._process = subprocess.Popen(
                [*with_parent(), "java", *command], stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        self._wait()

    def stop(self) -> None:
        """End it in order; nothing if it does not run."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None, "the broker does not run"
        self._process.kill()
        self._process.wait()
        self._process = None

    def create_topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """A new topic; returns its name. `config` with underscores in place of dots."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        name = name or f"topic-{uuid.uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
        made[name].result(timeout=300)
        deadline = time.monotonic() + 300
        while _partitions(admin, name) < partitions:  # made by the controller, and not known to the broker yet
            assert time.monotonic() < deadline, f"{name} does not appear"
            time.sleep(0.01)
        return name

    def _configuration(self, controller: int) -> dict[str, str]:
        name, password = ALICE
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},SECURED://{self.secured},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.secured.plain.sasl.jaas.config": f'{plain} user_{name}="{password}";',
            "listener.name.secured.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.secured.scram-sha-512.sasl.jaas.config": scram,
            "log.dir": str(self._folder / "log"),
            "auto.create.topics.enable": "false",
            "log.retention.ms": "-1",  # tests write records of years ago
            "broker.session.timeout.ms": "3000",  # a broker that was killed is let in again after that
            "broker.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "controlled.shutdown.enable": "false",
            "log.cleaner.dedupe.buffer.size": "4194304",
        }

    def _format(self, libs: Path, properties: Path) -> None:
        name, password = ALICE
        users = [
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        command = ["-cp", f"{libs}/*", "kafka.tools.StorageTool", "format", "--standalone", "-c", str(properties)]
        done = subprocess.run(
            ["java", *QUICK_JAVA, *command, "-t", "4L6g3nShT-eMCtK--X86sw", *users], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemMissing("Kafka", f"its storage cannot be formatted: {done.stderr[-300:]!r}")

    def _wait(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                said = (self._folder / "output").read_text()[-500:]
                raise SystemMissing("Kafka", f"it ended with {self._process.returncode}: {said!r}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    pass
                if AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=10).brokers:
                    return
            except (OSError, KafkaException):
                time.sleep(0.05)
        raise SystemMissing("Kafka", f"it does not answer within {_START_S} s")


def _partitions(admin: Any, topic: str) -> int:
    """How many the broker knows of."""
    found = admin.list_topics(timeout=300).topics.get(topic)
    return 0 if found is None else len(found.partitions)


def _free_port(reserved: ExitStack) -> int:
    """Kept until all are chosen, so that no two are the same."""
    listener = reserved.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One for all tests of a worker. A test that has killed it starts it again."""

    def started() -> KafkaBroker:
        broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
        broker.start()
        return broker

    broker = given(started)
    yield broker
    broker.stop()
