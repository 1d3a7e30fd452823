"""Sinks into Redis on a real server: the kit's contract, what is written, and what is refused."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from understudy.actors.flow.records import RecordMismatch
from understudy.actors.operators.marker import Marker
from understudy.runtime.connectors import RedisListSink, RedisRefused, RedisStreamSink, RedisUpsertSink
from understudy.state import pack_batch
from understudy.testing import SinkContract

from ....systems import SystemMissing
from ....systems.redis import RedisServer
from ..harness import Running

OUTSIDE = ("redis",)
WIDE = pa.schema([(f"f{n}", pa.string()) for n in range(8000)])


class _Contract(SinkContract):
    outside = OUTSIDE
    server: ClassVar[RedisServer]

    @pytest.fixture(autouse=True)
    def _with_server(self, redis: RedisServer) -> None:
        type(self).server = redis

    def clear(self) -> None:
        self.server.client.flushall()


@pytest.mark.drawn
class TestRedisStreamSink(_Contract):
    def make_sink(self) -> RedisStreamSink:
        return RedisStreamSink(self.server.url, "out")

    def contents(self) -> list[Any]:
        entries = self.server.client.xrange("out")
        return [{"id": int(fields["id"]), "value": fields["value"]} for _, fields in entries]


@pytest.mark.drawn
class TestRedisListSink(_Contract):
    def make_sink(self) -> RedisListSink:
        return RedisListSink(self.server.url, "out")

    def contents(self) -> list[Any]:
        return [json.loads(element) for element in self.server.client.lrange("out", 0, -1)]


@pytest.mark.drawn
class TestRedisUpsertSink(_Contract):
    guarantee = "upsert"

    def make_sink(self) -> RedisUpsertSink:
        return RedisUpsertSink(self.server.url, key="id", prefix="row:")

    def contents(self) -> list[Any]:
        found = [self.server.client.hgetall(key) for key in self.server.client.keys("row:*")]
        return [{"id": int(fields["id"]), "value": fields["value"]} for fields in found]


def test_values_become_texts_and_none_no_field(redis: RedisServer) -> None:
    running = Running(RedisStreamSink(redis.url, "out", most_entries=1000))
    running.take({"text": "ä", "n": 1, "x": 0.5, "yes": True, "none": None, "list": [1, "a"], "raw": b"b"})
    running.checkpoint(1)
    assert redis.client.xlen("out") == 0
    running.complete(1)
    ((_, fields),) = redis.client.xrange("out")
    assert fields == {"text": "ä", "n": "1", "x": "0.5", "yes": "true", "list": '[1, "a"]', "raw": "b"}


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("schema", [pa.schema([("n", pa.int64()), ("m", pa.string())]), pa.schema([])])
def test_a_record_without_a_value_is_refused_before_anything_is_written(
    redis: RedisServer, columnar: bool, schema: pa.Schema
) -> None:
    """A script that fails at it would have added those before it, and with each try again."""
    records = [dict.fromkeys(schema.names, None) | dict.fromkeys(schema.names[:1], 1), dict.fromkeys(schema.names)]
    running = Running(RedisStreamSink(redis.url, "out"))
    batch = pa.RecordBatch.from_struct_array(pa.array(records, pa.struct(schema)))
    with pytest.raises(RecordMismatch, match="needs a field"):
        running.operator.write(batch if columnar else records)
    running.operator.write(pa.RecordBatch.from_pydict({"n": [None, 1], "m": ["a", None]}))
    running.checkpoint(1)
    running.complete(1)
    assert [fields for _, fields in redis.client.xrange("out")] == [{"m": "a"}, {"n": "1"}]


@pytest.mark.parametrize("kind", [RedisStreamSink, RedisListSink])
@pytest.mark.parametrize(
    "batch",
    [
        [{"by place": {(1, 2): "a"}}],
        [{"text": "\ud800"}],
        pa.RecordBatch.from_pydict({"at": pa.array([1001], pa.time64("ns"))}),
    ],
    ids=["key", "text", "time"],
)
def test_what_cannot_be_written_is_refused_before_its_checkpoint(kind: Any, batch: Any) -> None:
    """Then the job can go back to before it."""
    running = Running(kind("redis://127.0.0.1:1", "out"))
    with pytest.raises(RecordMismatch):
        running.operator.write(batch)


@pytest.mark.parametrize("kind", [RedisStreamSink, RedisListSink])
def test_records_that_an_earlier_version_has_staged_are_written_alike(kind: Any) -> None:
    """It staged them as they came."""
    sink, records = Running(kind("redis://127.0.0.1:1", "out")).operator, [{"n": 1, "text": "ä", "x": [1]}, b"raw"]
    sink.write(records)

    def arguments(handle: Any) -> list[bytes]:
        (batch,) = sink.unstage(handle)
        return [each if isinstance(each, bytes) else str(each).encode() for each in sink._arguments(batch)]

    assert arguments(sink.stage(sink._kept)) == arguments([pack_batch(records)])


@pytest.mark.parametrize("columnar", [False, True])
def test_a_record_of_more_fields_than_a_script_takes_is_refused_before_anything_is_written(
    redis: RedisServer, columnar: bool
) -> None:
    def take(*names: range) -> Running:
        records = [{f"f{n}": str(n) for n in each} for each in names]
        running = Running(RedisStreamSink(redis.url, "out", most_entries=1000))
        if columnar:
            running.operator.write(pa.RecordBatch.from_pylist(records, WIDE))
        else:
            running.take(*records)
        return running

    with pytest.raises(RecordMismatch, match="at most 3,900 fields here, found 3,901"):
        take(range(1), range(3901))
    running = take(range(1), range(3900))
    running.checkpoint(1)
    running.complete(1)
    assert [len(fields) for _, fields in redis.client.xrange("out")] == [1, 3900]


@pytest.mark.parametrize("kind", [RedisStreamSink, RedisListSink])
def test_where_the_marker_may_not_be_moved_nothing_is_written(redis: RedisServer, kind: Any) -> None:
    """As Redis undoes nothing, and would have added the records again with each try."""
    redis.client.acl_setuser("half", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-hset"])
    try:
        running = Running(kind(redis.url.replace("redis://", "redis://half:pw@"), "out"))
        running.take({"n": 1})
        running.checkpoint(1)
        with pytest.raises(RedisRefused, match=r"this user may not run HSET on understudy:\{out}"):
            running.complete(1)
    finally:
        redis.client.acl_deluser("half")
    assert not redis.client.exists("out")


@pytest.mark.parametrize(
    "record", [{"n": "name", "gone": False}, {"n": "name", "gone": True}], ids=["replaced", "removed"]
)
def test_a_hash_takes_the_place_of_no_key_of_another_type(redis: RedisServer, record: dict[str, Any]) -> None:
    """What lies there is not of this sink: a list of another program, or the stream that the job reads."""
    redis.client.rpush("name", "a", "b")
    running = Running(RedisUpsertSink(redis.url, key="n", deleted="gone"))
    running.take({"n": "free", "gone": False}, record)
    with pytest.raises(RedisRefused, match=r"key 'name' is a list, wanted a hash: .*prefix="):
        running.checkpoint(1)
    assert redis.client.lrange("name", 0, -1) == ["a", "b"]
    assert redis.client.keys() == ["name"]


@pytest.mark.parametrize("kind", [RedisStreamSink, RedisListSink])
def test_a_key_of_another_type_is_refused_and_nothing_is_written(redis: RedisServer, kind: Any) -> None:
    redis.client.set("out", "taken")
    sink = kind(redis.url, "out")
    with pytest.raises(RedisRefused, match="key 'out' is a string, wanted a"):
        sink.check_at_submit(on_this_machine=True)
    staged = Running(sink).operator.unstage([pack_batch([{"n": 1}])])
    with pytest.raises(RedisRefused, match="WRONGTYPE the key is a string"):
        sink.apply(staged, Marker("s", "s-w", 1, 0))
    assert redis.client.keys() == ["out"]


def test_a_hash_takes_the_place_of_the_one_before_and_expires(redis: RedisServer) -> None:
    running = Running(RedisUpsertSink(redis.url, key=("a", "b"), prefix="p:", expire_ms=100_000))
    running.take({"a": 1, "b": 2, "old": "x"})
    running.checkpoint(1)
    running.take({"a": 1, "b": 2, "new": "y"})
    running.checkpoint(2)
    assert redis.client.hgetall("p:1:2") == {"a": "1", "b": "2", "new": "y"}
    assert 0 < redis.client.ttl("p:1:2") <= 100


def hashes(redis: RedisServer) -> dict[str, Any]:
    return {name: redis.client.hgetall(name) for name in sorted(redis.client.scan_iter())}


def test_what_is_gone_is_removed(redis: RedisServer) -> None:
    running = Running(RedisUpsertSink(redis.url, key="id", kind="kind"))
    rows = [("+I", 1, "a"), ("+I", 2, "b"), ("-U", 1, "a"), ("+U", 1, "c"), ("-D", 2, "b"), ("-U", 3, "x")]
    running.take(*({"kind": kind, "id": id, "name": name} for kind, id, name in rows))
    running.checkpoint(1)
    assert hashes(redis) == {"1": {"id": "1", "name": "c"}}
    running = Running(RedisUpsertSink(redis.url, key="id", deleted="gone"))
    running.take({"id": 1, "gone": True}, {"id": 4, "gone": False})
    running.checkpoint(1)
    assert hashes(redis) == {"4": {"id": "4"}}
    with pytest.raises(RecordMismatch, match="says '-T', wanted one of"):
        RedisUpsertSink(redis.url, key="id", kind="kind")._fields([{"kind": "-T", "id": 1}])
    with pytest.raises(RecordMismatch, match="no column 'gone': it has id"):
        RedisUpsertSink(redis.url, key="id", deleted="gone")._fields([{"id": 1}])


def test_wrong_credentials_are_refused_without_the_password_in_any_text() -> None:
    try:
        server = RedisServer(password="rightone")
    except SystemMissing as missing:
        pytest.skip(str(missing))
    try:
        sink = RedisStreamSink(f"redis://:wrongone@127.0.0.1:{server.port}/0", "out")
        assert "wrongone" not in repr(sink)
        with pytest.raises(RedisRefused, match="Wanted: a user and password") as refused:
            sink.check_at_submit(on_this_machine=True)
        assert "wrongone" not in str(refused.value)
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="wanted redis://"):
        RedisStreamSink(url, "out")
