"""SseSource against a real HTTP server on loopback: replay, broken connections, and what is no event stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from understudy.actors.errors import OutsideUnavailable
from understudy.actors.operators.source import END
from understudy.runtime.connectors import HttpRefused, SseSource, UnreadableInput

from .driving import Driven
from .event_server import EventServer


@pytest.fixture
def server() -> Iterator[EventServer]:
    with closing(EventServer()) as server:
        server.count = 20
        yield server


def test_events_come_in_order_and_then_what_is_new(server: EventServer) -> None:
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
        server.count = 22
        assert run.take(2) == [20, 21]
    assert server.asked == [None]


def test_a_connection_that_breaks_is_replayed_behind_the_last_event(server: EventServer) -> None:
    server.cuts = [4, 9]
    server.preface = "retry: 10\n\n"
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
    assert server.asked == [None, "4", "9"]


def test_a_restart_is_replayed_behind_what_its_checkpoint_covers(server: EventServer) -> None:
    with Driven(SseSource(server.url)) as first:
        seen = first.take(1)
        offset = first.source.offset()
    server.count = 25
    with Driven(SseSource(server.url), offset) as second:
        seen += second.take(25 - len(seen))
    assert seen == list(range(25))


def test_a_first_id_a_parse_function_and_headers_are_used(server: EventServer) -> None:
    made = SseSource(
        server.url,
        last_event_id="17",
        headers=lambda: {"Authorization": "secret"},
        parse=lambda event: (event.event, event.id, event.data),
    )
    with Driven(made) as run:
        assert run.take(2) == [("message", "18", "18"), ("message", "19", "19")]
    assert server.authorized == ["secret"]


def test_events_that_are_compressed_come_as_they_are_sent(server: EventServer) -> None:
    server.with_gzip = True
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))


def test_a_busy_server_is_tried_again(server: EventServer, caplog: pytest.LogCaptureFixture) -> None:
    server.faults = [(503, {}), (429, {"Retry-After": "0"})]
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
    said = [each.getMessage() for each in caplog.records if each.name == "understudy.source"]
    assert len(said) == 2, "once that it is away, once that it works again"
    assert "answers 503" in said[0]


def test_the_server_says_when_to_connect_again(server: EventServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.runtime.connectors.fed_source import Feed

    waits: list[float] = []
    monkeypatch.setattr(Feed, "wait", lambda _self, seconds: waits.append(seconds))
    server.preface = "retry: 7000\n\n"
    server.cuts = [4]
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
    assert waits[0] == 7


def test_a_stream_that_is_over_is_the_end(server: EventServer) -> None:
    server.ends_at = 20
    server.preface = "retry: 10\n\n"
    with Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
        assert run.poll(lambda each: each is not None) is END
    assert server.asked == [None, "19"]


def test_a_server_that_stays_busy_is_an_error(server: EventServer) -> None:
    server.faults = [(500, {})]
    with Driven(SseSource(server.url, retry_ms=0)) as run, pytest.raises(OutsideUnavailable, match="answers 500"):
        run.take(1)


def test_what_is_no_success_is_refused_without_the_query(server: EventServer) -> None:
    server.faults = [(403, {})]
    with (
        Driven(SseSource(f"{server.url}?token=secret")) as run,
        pytest.raises(HttpRefused, match="answers 403 Forbidden") as refused,
    ):
        run.take(1)
    assert "secret" not in str(refused.value)


def test_an_answer_that_is_no_event_stream_is_refused(server: EventServer) -> None:
    server.kind = "application/json"
    with Driven(SseSource(server.url)) as run, pytest.raises(HttpRefused, match="found 'application/json'"):
        run.take(1)


def test_an_event_that_cannot_be_parsed_is_an_error_behind_what_stands_before_it(server: EventServer) -> None:
    server.nonsense_at = 3
    with Driven(SseSource(server.url)) as run:
        assert run.take(3) == [0, 1, 2]
        with pytest.raises(UnreadableInput, match="event '3', 'nonsense'"):
            run.take(1)


def test_an_event_without_end_is_refused_before_it_fills_the_memory(server: EventServer) -> None:
    server.preface = "data: " + "1" * 1_000_000
    with (
        Driven(SseSource(server.url, max_bytes=100_000)) as run,
        pytest.raises(UnreadableInput, match=r"wanted at most 100,000 bytes \(max_bytes\)"),
    ):
        run.take(1)


def test_events_without_ids_are_said_to_be_lost_by_a_restart(
    server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.with_ids = False
    with caplog.at_level(logging.WARNING, "understudy.source"), Driven(SseSource(server.url)) as run:
        assert run.take(20) == list(range(20))
        assert run.source.offset() == {"last_event_id": ""}
    assert caplog.text.count("records are lost (at most once)") == 1


def test_a_silent_connection_is_made_again(server: EventServer) -> None:
    with Driven(SseSource(server.url, idle_ms=20)) as run:
        assert run.take(20) == list(range(20))
        while len(server.asked) < 2:
            server.count += 1
            run.take(1)
    assert server.asked[1] is not None


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted http://"):
        SseSource("example.com/events")
    with pytest.raises(ValueError, match="idle_ms: wanted a number of milliseconds from 1 "):
        SseSource("http://example.com/events", idle_ms=0)
