"""RedisStreamSource on a real server: entries once, whatever restarts there are; and losses that are noticed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.errors import OutsideUnavailable
from understudy.actors.operators.source import FromSplit, RecordedOffset, continue_source
from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors import RedisStreamSource, StreamTrimmed, UnreadableInput

from ....systems.redis import RedisServer
from ..harness import make_context

WAIT_S = 60


class Attempt:
    """One attempt of one subtask, that is woken as a task is."""

    def __init__(
        self, url: str, streams: Any = "in", where: tuple[int, int] = (0, 1), recorded: Any = (), **options: Any
    ) -> None:
        self.where = where
        self._woken = threading.Event()
        self.source = RedisStreamSource(url, streams, **options)
        self.source.context = replace(make_context(*where), wake=self._woken.set)
        self.source.open()
        continue_source(self.source, recorded)

    def take(self, count: int) -> list[Any]:
        """Records until there are this many."""
        found: list[Any] = []
        while len(found) < count:
            found += self.poll(lambda polled: polled is not None).records
        return found

    def poll(self, until: Callable[[Any], bool]) -> Any:
        while not until(polled := self.source.poll()):
            assert self._woken.wait(WAIT_S), "nothing came"
            self._woken.clear()
        return polled

    def numbers(self, count: int) -> list[int]:
        return [int(each["fields"]["n"]) for each in self.take(count)]

    def recorded(self) -> RecordedOffset:
        return RecordedOffset(*self.where, unpack_plain(pack_plain(self.source.offset())))


@pytest.fixture
def start(redis: RedisServer) -> Iterator[Callable[..., Attempt]]:
    attempts = []

    def start(*arguments: Any, **options: Any) -> Attempt:
        attempts.append(Attempt(redis.url, *arguments, **options))
        return attempts[-1]

    yield start
    for attempt in attempts:
        attempt.source.close()


def add(redis: RedisServer, *numbers: int, stream: str = "in") -> None:
    for number in numbers:
        redis.client.xadd(stream, {"n": number})


def test_entries_come_in_order_and_a_restart_goes_on_where_the_checkpoint_was(redis: RedisServer, start: Any) -> None:
    add(redis, *range(10))
    first = start(batch_rows=3)
    assert first.numbers(6) == list(range(6))
    recorded = first.recorded()
    first.source.close()
    second = start(recorded=[recorded], batch_rows=4)
    assert second.numbers(4) == [6, 7, 8, 9]
    add(redis, 10)
    assert second.numbers(1) == [10]


def test_a_record_says_stream_and_id(redis: RedisServer, start: Any) -> None:
    entry_id = redis.client.xadd("in", {"a": "ä", "raw": b"\xff"})
    assert start().take(1) == [{"stream": "in", "id": entry_id, "fields": {"a": "ä", "raw": b"\xff"}}]


def test_with_a_schema_fields_become_columns(redis: RedisServer, start: Any) -> None:
    schema = pa.schema([("_id", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("ok", pa.bool_())])
    ids = [redis.client.xadd("in", {"n": 1, "x": 0.5, "ok": "true"}), redis.client.xadd("in", {"n": 2})]
    attempt = start(schema=schema)
    records = attempt.poll(lambda polled: polled is not None).records
    assert records.to_pylist() == [
        {"_id": ids[0], "n": 1, "x": 0.5, "ok": True},
        {"_id": ids[1], "n": 2, "x": None, "ok": None},
    ]
    assert records.schema == attempt.source.source_schema()
    redis.client.xadd("in", {"n": "no number"})
    with pytest.raises(UnreadableInput, match=r"field 'n' is no int64.*no number"):
        attempt.poll(lambda polled: polled is not None)


def test_streams_are_splits_and_a_change_of_parallelism_deals_them_out_again(redis: RedisServer, start: Any) -> None:
    names = ["a", "b", "c"]
    for name in names:
        add(redis, 1, 2, stream=name)
    recorded = []
    seen = []
    for index in range(2):
        attempt = start(names, (index, 2), batch_rows=1)
        polled = attempt.poll(lambda polled: polled is not None)
        assert isinstance(polled, FromSplit)
        assert polled.split in attempt.source.current_splits()
        seen += polled.records
        recorded.append(attempt.recorded())
    for index in range(3):
        attempt = start(names, (index, 3), recorded)
        own = [each for each in seen if each["stream"] in attempt.source.current_splits()]
        seen += attempt.take(2 - len(own))
    assert sorted((each["stream"], each["fields"]["n"]) for each in seen) == [(a, b) for a in names for b in "12"]


def test_a_stream_that_is_made_later_is_waited_for(redis: RedisServer, start: Any) -> None:
    attempt = start()
    assert attempt.source.poll() is None
    add(redis, 1)
    assert attempt.numbers(1) == [1]


def test_latest_begins_behind_what_is_there_and_restarts_lose_nothing(redis: RedisServer, start: Any) -> None:
    add(redis, 1)
    first = start(start="latest")
    first.poll(lambda _: bool(first.source.offset()))
    recorded = first.recorded()
    first.source.close()
    add(redis, 2)
    assert start(start="latest", recorded=[recorded]).numbers(1) == [2]


def _trim_all(redis: RedisServer) -> None:
    redis.client.xtrim("in", maxlen=0)


def _trim_some(redis: RedisServer) -> None:
    redis.client.xtrim("in", maxlen=1, approximate=False)


def _delete_one(redis: RedisServer) -> None:
    redis.client.xdel("in", redis.client.xrange("in")[-2][0])


def _delete_key(redis: RedisServer) -> None:
    redis.client.delete("in")


def _make_again(redis: RedisServer) -> None:
    redis.client.delete("in")
    add(redis, 7)


@pytest.mark.parametrize("lose", [_trim_all, _trim_some, _delete_one, _delete_key, _make_again])
def test_what_is_lost_before_it_was_read_is_an_error(redis: RedisServer, start: Any, lose: Any) -> None:
    add(redis, 1, 2)
    first = start()
    assert first.numbers(2) == [1, 2]
    recorded = first.recorded()
    first.source.close()
    add(redis, 3, 4, 5)
    lose(redis)
    second = start(recorded=[recorded])
    with pytest.raises(StreamTrimmed, match=r"stream 'in' of redis://.*on_loss=\"continue\""):
        second.poll(lambda polled: polled is not None)


@pytest.mark.parametrize("lose", [_trim_some, _delete_one, _make_again])
def test_on_loss_continue_reads_what_is_left_and_says_so(
    redis: RedisServer, start: Any, lose: Any, caplog: pytest.LogCaptureFixture
) -> None:
    add(redis, 1, 2)
    first = start()
    assert first.numbers(2) == [1, 2]
    recorded = first.recorded()
    first.source.close()
    add(redis, 3, 4, 5)
    lose(redis)
    left = [int(fields["n"]) for _, fields in redis.client.xrange("in") if int(fields["n"]) > 2]
    second = start(recorded=[recorded], on_loss="continue")
    assert second.numbers(len(left)) == left
    assert any("read up to" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize(("newest", "then"), [("2-1", "2-2"), ("4-1", "4-2")], ids=["fewer", "some new"])
def test_a_replica_that_took_over_without_the_newest_entries_makes_nothing_double(
    redis: RedisServer, start: Any, newest: str, then: str
) -> None:
    """Entries that were read are gone, as asynchronous replication may leave it; those before them are there."""
    for number in (1, 2, 3):
        redis.client.xadd("in", {"n": number}, id=f"{number}-1")
    first = start()
    assert first.numbers(3) == [1, 2, 3]
    recorded = first.recorded()
    first.source.close()
    redis.client.delete("in")
    for entry_id in ("1-1", newest):
        redis.client.xadd("in", {"n": entry_id[0]}, id=entry_id)
    failing = start(recorded=[recorded])
    with pytest.raises(StreamTrimmed, match="a replica without the newest entries has taken over, or"):
        failing.poll(lambda polled: polled is not None)
    second = start(recorded=[recorded], on_loss="continue")
    if newest == "2-1":
        second.poll(lambda _: second.source.offset()["in"][0] == newest)
    redis.client.xadd("in", {"n": 9}, id=then)
    assert second.numbers(1 if newest == "2-1" else 2) == ([9] if newest == "2-1" else [4, 9])


def test_what_is_trimmed_after_it_was_read_is_no_loss(redis: RedisServer, start: Any) -> None:
    add(redis, 1, 2)
    attempt = start()
    assert attempt.numbers(2) == [1, 2]
    recorded = attempt.recorded()
    _trim_all(redis)
    add(redis, 3)
    assert attempt.numbers(1) == [3]
    assert start(recorded=[recorded]).numbers(1) == [3]


def test_a_stream_that_was_trimmed_before_the_job_began_is_read_from_its_first_entry(
    redis: RedisServer, start: Any
) -> None:
    add(redis, 1, 2, 3)
    _trim_some(redis)
    assert start().numbers(1) == [3]


def test_a_server_that_dies_and_comes_back_loses_and_doubles_nothing(
    redis: RedisServer, start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    add(redis, 1)
    attempt = start()
    assert attempt.numbers(1) == [1]
    redis.kill()
    redis.start()
    add(redis, 2)
    assert attempt.numbers(1) == [2]
    assert [each.levelno for each in caplog.records if each.name == "understudy.source"] in (
        [],
        [logging.WARNING, logging.WARNING],
    )


def test_a_server_that_stays_away_is_an_error(start: Any, redis: RedisServer) -> None:
    attempt = Attempt("redis://127.0.0.1:1/0", retry_ms=0)
    with pytest.raises(OutsideUnavailable, match="reading has failed 1 times"):
        attempt.poll(lambda polled: polled is not None)
    attempt.source.close()
