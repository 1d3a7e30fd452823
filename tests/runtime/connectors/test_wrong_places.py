"""What is no address, table or key is refused where a source or sink is made: as from a variable that is not set."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    HttpSource,
    IcebergSink,
    IcebergSource,
    InvalidSetting,
    KafkaSink,
    KafkaSource,
    LineSource,
    PostgresChanges,
    RedisListSink,
    RedisStreamSink,
    RedisStreamSource,
    RedisUpsertSink,
    SqlSink,
    SqlUpsertSink,
    SseSource,
    StreamEnvironment,
    WebsocketSource,
)
from understudy.runtime.connectors.names import one_name, several_names

REDIS, DATABASE, NO_TABLE = "redis://localhost", "sqlite:///x", "table: wanted the name of a table, found None"
HTTP = "url: wanted http://… or https://…, found None"

WRONG: list[tuple[Callable[[Any], object], str]] = [
    (HttpSource, HTTP),
    (SseSource, HTTP),
    (WebsocketSource, "url: wanted ws://… or wss://…, found None"),
    (LineSource, "address: wanted host:port, or the path of a Unix socket, found None"),
    (lambda it: KafkaSource(it, "localhost:9092"), "topics: wanted the name of a topic, or several, found None"),
    (lambda it: KafkaSource("t", it), "bootstrap_servers: wanted 'host:port', or several, found None"),
    (lambda it: KafkaSink(it, "localhost:9092"), "topic: wanted the name of a topic, found None"),
    (lambda it: KafkaSink("t", it), "bootstrap_servers: wanted 'host:port', or several, found None"),
    (lambda it: RedisStreamSource(REDIS, it), "streams: wanted the key of a stream, or several, found None"),
    (lambda it: RedisStreamSink(REDIS, it), "key: wanted the key of a stream, found None"),
    (lambda it: RedisListSink(REDIS, it), "key: wanted the key of a list, found None"),
    (lambda it: RedisUpsertSink(REDIS, key=it), "key: wanted a column, a position or a function of a record, or sever"),
    (lambda it: SqlSink(DATABASE, it), NO_TABLE),
    (lambda it: SqlUpsertSink(DATABASE, it, key="k"), NO_TABLE),
    (lambda it: SqlUpsertSink(DATABASE, "t", key=it), "key: wanted the name of a column, or several, found None"),
    (lambda it: PostgresChanges("postgresql://localhost:1/d", it, slot="s"), NO_TABLE),
    (lambda it: IcebergSink(it, catalog={"type": "in-memory"}), NO_TABLE),
    (lambda it: IcebergSource(it, catalog={"type": "in-memory"}), NO_TABLE),
    (
        lambda it: IcebergSource("a.b", catalog=it),
        "catalog: wanted the name of a catalog, or its properties, found None",
    ),
]


@pytest.mark.parametrize(("make", "says"), WRONG, ids=[says[:30] for _, says in WRONG])
def test_what_is_no_place_is_named_with_what_is_wanted(make: Callable[[Any], object], says: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+: wanted") as failed:
        make(None)
    assert str(failed.value).startswith(says)


@pytest.mark.parametrize("made", [HttpSource, SseSource, WebsocketSource])
@pytest.mark.parametrize("url", ["http", "https", "ws", "wss", "http:/x", "ftp://x"])
def test_a_scheme_alone_is_no_url(made: Callable[[Any], object], url: str) -> None:
    with pytest.raises(ValueError, match=f"url: wanted .*, found '{url}'$"):
        made(url)


@pytest.mark.parametrize("made", [HttpSource, WebsocketSource])
def test_a_url_that_is_refused_is_shown_without_its_password(made: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError, match=r"found 'ftp://") as failed:
        made("ftp://me:secret@localhost/x")
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("given", ["", None, 7, b"t"])
def test_a_name_is_a_text_that_is_not_empty(given: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"table: wanted the name of a table, found {given!r}")):
        one_name("table", given, "the name of a table")
    for several in (given, [given], ["a", given]):
        with pytest.raises(ValueError, match=r"topics: wanted the name of a topic, or several, found"):
            several_names("topics", several, "the name of a topic")


def test_several_names_are_one_or_more_each_once() -> None:
    assert one_name("table", "a", "the name of a table") == "a"
    for given, names in (("a", ("a",)), (["b", "a", "b"], ("b", "a")), ({"c": 1}, ("c",))):
        assert several_names("topics", given, "the name of a topic") == names
    with pytest.raises(ValueError, match=r"or several, found \[\]"):
        several_names("topics", [], "the name of a topic")


def test_a_prefix_of_transactions_is_a_name_or_none() -> None:
    KafkaSink("t", "localhost:9092", transactional_id_prefix=None)
    with pytest.raises(ValueError, match="transactional_id_prefix: wanted a name, or None, found ''"):
        KafkaSink("t", "localhost:9092", transactional_id_prefix="")


@pytest.mark.parametrize(
    "begin",
    [
        lambda env, it: env.from_kafka("t", "localhost:9092", schema=it),
        lambda env, it: env.from_redis(REDIS, "s", schema=it),
        lambda env, it: env.from_sql(DATABASE, "t", schema=it),
    ],
    ids=["kafka", "redis", "sql"],
)
def test_a_schema_that_is_none_is_named(begin: Callable[[StreamEnvironment, Any], object]) -> None:
    with pytest.raises(InvalidSetting, match=r"schema: wanted a pyarrow.Schema, as in pa\.schema\(.*\), found a dict"):
        begin(StreamEnvironment(), {"id": int})
