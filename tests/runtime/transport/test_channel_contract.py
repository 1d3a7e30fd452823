"""What every channel promises (actors/flow/channels.py), over each of its three kinds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pyarrow as pa
import pytest

from understudy.actors.errors import ChannelBroken
from understudy.actors.flow.elements import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from understudy.messages import CheckpointId, row_type
from understudy.runtime.transport import ZmqDataPlane

from .ends import Ends, ipc_planes, open_channel, raised_by, tcp_planes

CREDIT = 4
"""So many batches of a few bytes fit into a window."""
BARRIER = CheckpointBarrier(CheckpointId(1), 1_700_000_000_000)
Open: TypeAlias = Callable[[int], Ends]

ARROW = pa.RecordBatch.from_pylist(
    [
        {"n": 1, "name": "Jürgen", "tags": ["a", None], "point": {"x": 1.5, "y": None}, "city": "JFK"},
        {"n": None, "name": None, "tags": None, "point": None, "city": None},
        {"n": 3, "name": "", "tags": [], "point": {"x": None, "y": 2}, "city": "LGA"},
    ],
    schema=pa.schema(
        {
            "n": pa.int64(),
            "name": pa.string(),
            "tags": pa.list_(pa.string()),
            "point": pa.struct({"x": pa.float64(), "y": pa.int32()}),
            "city": pa.dictionary(pa.int8(), pa.string()),
        }
    ),
)
FLIGHT = row_type(("origin", "delay"))


class ChannelContract:
    """Subclasses give `open_`, a fixture that opens a channel of a given id; all of them on one connection."""

    def test_elements_arrive_in_order(self, open_: Open) -> None:
        ends = open_(1)
        sent: list[Element] = [[n] if n % 3 else Watermark(n) for n in range(200)]
        sender = Thread(target=_send_all, args=(ends, sent))
        sender.start()
        assert ends.take(len(sent)) == sent
        sender.join()

    @pytest.mark.parametrize(
        "element",
        [
            BARRIER,
            replace(BARRIER, stop=True),
            CancelCheckpointMarker(CheckpointId(2**62)),
            Watermark(-(2**63)),
            EndOfData(),
            EndOfPartition(),
            ARROW,
            ARROW.slice(1, 2),
            [1, "two", None, 3.5, {"k": [b"v"]}, (1, (2, [3])), 2**70],
            [("JFK", 1), ("LGA", None)],
            [("JFK", 1), ("LGA",), ()],
            [FLIGHT("JFK", 2**70), FLIGHT("LGA", (1, 2))],
            [()],
        ],
        ids=repr,
    )
    def test_every_kind_of_element_crosses_unchanged(self, open_: Open, element: Element) -> None:
        ends = open_(1)
        ends.output.send(element)
        (received,) = ends.take(1)
        assert received == element
        assert type(received) is type(element)
        if isinstance(received, list) and isinstance(element, list):
            assert list(map(type, received)) == list(map(type, element))

    def test_a_producer_is_not_available_while_elements_wait_for_credit(self, open_: Open) -> None:
        ends = open_(1)
        sent = 0
        while ends.output.is_available() or sent < CREDIT:
            ends.output.send([sent])
            sent += 1
        assert sent <= CREDIT + 1
        assert ends.take(sent) == [[n] for n in range(sent)]
        ends.until_available()

    def test_sending_beyond_the_credit_loses_nothing(self, open_: Open) -> None:
        ends = open_(1)
        sent: list[Element] = [[n] for n in range(10 * CREDIT)]
        for element in sent:
            ends.output.send(element)
        assert ends.take(len(sent)) == sent

    def test_a_barrier_keeps_its_place_behind_batches_that_wait(self, open_: Open) -> None:
        ends = open_(1)
        sent: list[Element] = [*([n] for n in range(2 * CREDIT)), BARRIER, [99], EndOfData()]
        for element in sent:
            ends.output.send(element)
        assert ends.take(len(sent)) == sent

    def test_a_channel_that_nobody_polls_blocks_no_other(self, open_: Open) -> None:
        blocked, free = open_(1), open_(2)
        for n in range(3 * CREDIT):
            blocked.output.send([n])
        sent: list[Element] = [[n] for n in range(10 * CREDIT)]
        for element in sent:
            free.output.send(element)
        assert free.take(len(sent)) == sent
        assert not blocked.output.is_available()

    def test_what_was_sent_before_the_end_arrives_after_the_producer_closed(self, open_: Open) -> None:
        ends = open_(1)
        sent: list[Element] = [*([n] for n in range(3 * CREDIT)), EndOfPartition()]
        for element in sent:
            ends.output.send(element)
        ends.output.close()
        assert ends.take(len(sent)) == sent
        assert ends.input.poll() is None
        ends.input.close()

    def test_a_producer_that_closes_before_its_end_breaks_the_channel(self, open_: Open) -> None:
        ends = open_(1)
        ends.output.send([1])
        assert ends.take(1) == [[1]]
        ends.output.close()
        raised_by(ends.input.poll, ChannelBroken)
        with pytest.raises(ChannelBroken):
            ends.input.poll()

    def test_a_consumer_that_closes_before_the_end_breaks_the_channel(self, open_: Open) -> None:
        ends = open_(1)
        ends.output.send([1])
        assert ends.take(1) == [[1]]
        ends.input.close()
        raised_by(lambda: ends.output.send([2]), ChannelBroken)
        assert ends.output.is_available()

    def test_a_waiting_producer_is_woken_when_the_consumer_closes(self, open_: Open) -> None:
        ends = open_(1)
        for n in range(3 * CREDIT):
            ends.output.send([n])
        ends.take(1)
        ends.producer.event.clear()
        ends.input.close()
        ends.until_available()
        with pytest.raises(ChannelBroken):
            ends.output.send([0])

    def test_the_end_may_be_sent_to_a_consumer_that_is_gone(self, open_: Open) -> None:
        ends = open_(1)
        ends.output.send(EndOfData())
        assert ends.take(1) == [EndOfData()]
        ends.input.close()
        raised_by(lambda: ends.output.send(EndOfData()), ChannelBroken)
        ends.output.send(EndOfPartition())
        ends.output.close()

    def test_closing_twice_is_closing_once(self, open_: Open) -> None:
        ends = open_(1)
        for _ in range(2):
            ends.output.close()
            ends.input.close()


def _send_all(ends: Ends, elements: list[Element]) -> None:
    for element in elements:
        ends.until_available()
        ends.output.send(element)


def _opener(producer: ZmqDataPlane, consumer: ZmqDataPlane) -> Open:
    return lambda channel_id: open_channel(producer, consumer, channel_id)


class TestInProcessChannel(ChannelContract):
    @pytest.fixture
    def open_(self) -> Iterator[Open]:
        with tcp_planes() as (plane, _):
            yield _opener(plane, plane)


class TestTcpChannel(ChannelContract):
    @pytest.fixture
    def open_(self) -> Iterator[Open]:
        with tcp_planes() as planes:
            yield _opener(*planes)


class TestIpcChannel(ChannelContract):
    @pytest.fixture
    def open_(self) -> Iterator[Open]:
        with tempfile.TemporaryDirectory() as folder, ipc_planes(Path(folder)) as planes:
            yield _opener(*planes)
