"""Kafka, PostgreSQL and Redis by TLS, on real servers with a certificate that is its own authority: with its file they
are read and written; without it the connection is refused, in words that say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from understudy import (
    KafkaRefused,
    KafkaSink,
    KafkaSource,
    RedisListSink,
    RedisRefused,
    RedisStreamSource,
    SqlError,
    SqlSource,
)

from ...systems import given
from ...systems.certificate import Certificate, certificate
from ...systems.kafka import ALICE, KafkaBroker
from ...systems.postgresql import PASSWORD, PostgreSQL
from ...systems.redis import RedisServer
from .harness import Running
from .kafka.topics import values
from .sql.driving import Driven

__all__ = ["certificate"]


@pytest.fixture
def redis_with_tls(certificate: Certificate) -> Iterator[RedisServer]:
    server = given(lambda: RedisServer(password="s3cret", tls=certificate))
    yield server
    server.stop()


def test_redis(redis_with_tls: RedisServer) -> None:
    url = redis_with_tls.url
    redis_with_tls.client.xadd("numbers", {"n": 1})
    source = RedisStreamSource(url, "numbers")
    source.check_at_submit(on_this_machine=True)
    run = Driven(source)
    assert [each["fields"] for each in run.poll()] == [{"n": "1"}]
    source.close()
    sink = RedisListSink(url, "out")
    sink.check_at_submit(on_this_machine=True)
    running = Running(sink)
    running.take({"n": 1})
    running.checkpoint(1)
    running.complete(1)
    assert redis_with_tls.client.lrange("out", 0, -1) == ['{"n": 1}']
    running.operator.close()


def test_redis_refused(redis_with_tls: RedisServer) -> None:
    untrusted = redis_with_tls.url.partition("?")[0]
    with pytest.raises(RedisRefused, match="does not trust") as refused:
        RedisStreamSource(untrusted, "numbers").check_at_submit(on_this_machine=True)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(RedisRefused, match="user and password"):
        RedisListSink(redis_with_tls.url.replace("s3cret", "wrong"), "out").check_at_submit(on_this_machine=True)


@pytest.fixture
def postgresql_with_tls(certificate: Certificate) -> Iterator[PostgreSQL]:
    server = given(lambda: PostgreSQL(tls=certificate))
    yield server
    server.stop()


def test_postgresql(postgresql_with_tls: PostgreSQL, certificate: Certificate) -> None:
    verified = f"{postgresql_with_tls.dsn('postgres')}?sslmode=verify-full&sslrootcert="
    with psycopg.connect(f"{verified}{certificate.file}") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
    run = Driven(SqlSource(f"{verified}{certificate.file}", "t"))
    assert run.rows() == [{"id": 1}, {"id": 2}]
    run.source.close()
    with pytest.raises(SqlError, match=r"root certificate file .*no-such-file") as refused:
        SqlSource(f"{verified}/no-such-file", "t", retry_ms=0)
    assert PASSWORD not in str(refused.value)


@pytest.fixture
def kafka_with_tls(certificate: Certificate, tmp_path: Path) -> Iterator[KafkaBroker]:
    store = tmp_path / "store.pem"
    store.write_text(certificate.key.read_text() + certificate.file.read_text())
    broker = KafkaBroker(
        tmp_path / "broker",
        {
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL",
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": str(store),
        },
    )
    given(broker.start)
    yield broker
    broker.stop()


@pytest.mark.processes
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_kafka(kafka_with_tls: KafkaBroker, certificate: Certificate, mechanism: str) -> None:
    name, password = ALICE
    login = {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password}
    options = {"security.protocol": "sasl_ssl", "ssl.ca.location": str(certificate.file), **login}
    topic = kafka_with_tls.create_topic()

    def sink(**changed: str) -> KafkaSink:
        return KafkaSink(topic, kafka_with_tls.secured, transactional_id_prefix=topic, options=options | changed)

    sink().check_at_submit(True)
    first = Running(sink())
    first.take({"n": 1})
    snapshot = first.checkpoint(1)
    restored = Running(sink(), snapshot, attempt=1)
    assert values(kafka_with_tls, topic) == [{"n": 1}], "recovery has committed it, by requests of its own"
    source = KafkaSource(topic, kafka_with_tls.secured, options=options, bounded=True)
    source.check_at_submit(True)
    run = Driven(source)
    assert run.poll() == [{"n": 1}]
    for each in (first.operator, restored.operator, source):
        each.close()

    with pytest.raises(KafkaRefused, match="certificate") as refused:
        sink(**{"ssl.ca.location": ""}).check_at_submit(True)
    with pytest.raises(KafkaRefused, match="correct the user, the password or the protocol"):
        sink(**{"sasl.password": "mellon"}).check_at_submit(True)
    assert password not in str(refused.value)
