"""The two ends of a channel, as a task sees them. `runtime/transport` has the real ones, the simulator its own.

A channel is ordered and bounded. Nothing here blocks: a task asks before it takes input, and is woken when the answer
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...messages import ChannelDescriptor
from .elements import Element


class InputChannel(Protocol):
    """The consumer's end. Opened with a `wake` callback that is called, from any thread, when an element arrives."""

    def poll(self) -> Element | None:
        """The next element, or None when there is none yet.

        Raises ChannelBroken, after what came before it, for a gap, a duplicate, a malformed frame, or a producer that
        is lost or closed before EndOfPartition.
        """
        ...

    @property
    def bytes_passed(self) -> int:
        """How much has been taken of it so far. From any thread."""
        ...

    @property
    def usage(self) -> float:
        """Which part of what may wait in it does, 0 to 1. From any thread."""
        ...

    def close(self) -> None:
        """Take nothing any more. Before EndOfPartition the producer is notified, and fails. Idempotent."""
        ...


class OutputChannel(Protocol):
    """The producer's end. Opened with a `wake` callback that is called, from any thread, when it is available again."""

    def is_available(self) -> bool:
        """Whether the task may take further input: false while earlier elements wait for credit.

        A broken channel is available, so that the task comes, sends, and learns why.
        """
        ...

    def send(self, element: Element) -> None:
        """Queue one element; never blocks, never drops. Control elements need no credit but keep their place in line.

        Raises ChannelBroken when the consumer is lost or has closed; only EndOfPartition goes nowhere quietly then,
        for a producer at its end has nothing more to lose.
        """
        ...

    @property
    def bytes_passed(self) -> int:
        """How much has been sent so far. From any thread."""
        ...

    @property
    def usage(self) -> float:
        """Which part of what may wait in it does, 0 to 1. From any thread."""
        ...

    def close(self) -> None:
        """After EndOfPartition, what waits is still delivered; before it, the consumer fails. Idempotent."""
        ...


class DataPlane(Protocol):
    """One per TaskManager: makes the ends of its channels."""

    @property
    def endpoint(self) -> str:
        """Where other TaskManagers connect to."""
        ...

    def open_output(self, descriptor: ChannelDescriptor, wake: Callable[[], None]) -> OutputChannel:
        """The producer's end; its consumer may be there already, or come later."""
        ...

    def open_input(self, descriptor: ChannelDescriptor, wake: Callable[[], None], channels: int = 1) -> InputChannel:
        """The consumer's end; poll once after opening, since what came earlier wakes nobody.

        `channels`: how many its task reads from. They share what may be under way to it.
        """
        ...
