"""EventStream against the standard: WHATWG HTML, section 9.2.6, with its examples, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.runtime.connectors.web.event_stream import EventStream, ServerEvent

M = "message"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("data: YHOO\ndata: +2\ndata: 10\n\n", [ServerEvent(M, "YHOO\n+2\n10", "")]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [
                ServerEvent(M, "first event", "1"),
                ServerEvent(M, "second event", ""),
                ServerEvent(M, " third event", ""),
            ],
        ),
        ("data\n\ndata\ndata\n\ndata:", [ServerEvent(M, "", ""), ServerEvent(M, "\n", "")]),
        ("data:test\n\ndata: test\n\n", [ServerEvent(M, "test", ""), ServerEvent(M, "test", "")]),
        ("\ufeffevent: add\r\ndata: ä\r\rdata: 2\r\n\r\n", [ServerEvent("add", "ä", ""), ServerEvent(M, "2", "")]),
        ("event: lost\n\ndata: 1\nunknown: x\n\n", [ServerEvent(M, "1", "")]),
        ("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", [ServerEvent(M, "a", "1"), ServerEvent(M, "b", "1")]),
        ("id: 7\ndata: cut off", []),
    ],
)
@given(cuts=st.lists(st.integers(0, 90)))
def test_events_are_what_the_standard_says(text: str, wanted: list[ServerEvent], cuts: list[int]) -> None:
    data, stream = text.encode(), EventStream()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = [event for start, stop in pairwise(places) for event in stream.events(data[start:stop])]
    found += stream.events(b"")
    assert found == wanted


def test_an_id_counts_when_its_event_is_complete() -> None:
    stream = EventStream("3")
    assert stream.events(b"id: 4\ndata: x\n") == []
    assert stream.last_id == "3"
    assert stream.events(b"\nid: 5\n\n") == [ServerEvent(M, "x", "4")]
    assert stream.last_id == "5", "an id without data counts, too"


def test_the_time_to_wait_is_a_number_or_left_out() -> None:
    stream = EventStream()
    stream.events(b"retry: soon\n")
    assert stream.retry_ms is None
    stream.events(b"retry: 250\n")
    assert stream.retry_ms == 250
