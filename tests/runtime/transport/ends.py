"""Both ends of a channel as tests use them, and waiting without guessing times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from understudy.actors.flow.channels import InputChannel, OutputChannel
from understudy.actors.flow.elements import Element
from understudy.messages import ChannelDescriptor, ChannelId, SubtaskIndex, TaskManagerId
from understudy.runtime.system import CurveKeys
from understudy.runtime.transport import ZmqDataPlane
from understudy.runtime.transport.limits import FRAME_BYTES

PATIENCE_S = 120
"""How long a test waits for what must happen; it fails after that, and never depends on how soon it happens."""


WINDOW = 4 * FRAME_BYTES
"""Four batches of a few bytes."""

CLUSTER = CurveKeys.generate()


@dataclass
class Waker:
    """A wake-up that can be waited for."""

    event: Event = field(default_factory=Event)

    def __call__(self) -> None:
        self.event.set()

    def wait(self) -> None:
        assert self.event.wait(PATIENCE_S), "nobody woke the task"
        self.event.clear()


@dataclass
class Ends:
    """The two ends of one channel, and the wake-ups that they were opened with."""

    output: OutputChannel
    input: InputChannel
    producer: Waker
    consumer: Waker

    def take(self, count: int) -> list[Element]:
        """The next `count` elements; sleeps only on the channel's own wake-up."""
        elements: list[Element] = []
        while len(elements) < count:
            element = self.input.poll()
            if element is None:
                self.consumer.wait()
            else:
                elements.append(element)
        return elements

    def until_available(self) -> None:
        while not self.output.is_available():
            self.producer.wait()


def eventually(condition: Callable[[], object]) -> None:
    """Wait for a fact that nobody wakes us for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


def raised_by(action: Callable[[], object], kind: type[Exception]) -> Exception:
    """The exception that `action` raises, now or after some more tries."""
    caught: list[Exception] = []

    def attempt() -> bool:
        try:
            action()
        except kind as error:
            caught.append(error)
        return bool(caught)

    eventually(attempt)
    return caught[0]


def descriptor(channel_id: int, endpoint: str, producer: str = "tm-0", consumer: str = "tm-1") -> ChannelDescriptor:
    return ChannelDescriptor(
        channel_id=ChannelId(channel_id),
        edge=0,
        producer_subtask=SubtaskIndex(0),
        consumer_subtask=SubtaskIndex(0),
        producer_task_manager=TaskManagerId(producer),
        consumer_task_manager=TaskManagerId(consumer),
        producer_endpoint=endpoint,
    )


def open_channel(producer: ZmqDataPlane, consumer: ZmqDataPlane, channel_id: int) -> Ends:
    described = descriptor(channel_id, producer.endpoint, consumer="tm-0" if producer is consumer else "tm-1")
    wake_producer, wake_consumer = Waker(), Waker()
    output = producer.open_output(described, wake_producer)
    return Ends(output, consumer.open_input(described, wake_consumer), wake_producer, wake_consumer)


@contextmanager
def tcp_planes(window_bytes: int = WINDOW) -> Iterator[tuple[ZmqDataPlane, ZmqDataPlane]]:
    with (
        ZmqDataPlane(curve=CLUSTER, window_bytes=window_bytes) as producer,
        ZmqDataPlane(curve=CLUSTER, window_bytes=window_bytes) as consumer,
    ):
        yield producer, consumer


@contextmanager
def ipc_planes(folder: Path, window_bytes: int = WINDOW) -> Iterator[tuple[ZmqDataPlane, ZmqDataPlane]]:
    folder.chmod(0o700)
    with (
        ZmqDataPlane(f"ipc://{folder}/a", window_bytes=window_bytes) as producer,
        ZmqDataPlane(f"ipc://{folder}/b", window_bytes=window_bytes) as consumer,
    ):
        yield producer, consumer
