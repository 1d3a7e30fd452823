"""The two ends of a channel, as a task sees them. `runtime/transport` has the real ones, the simulator its own.

A channel is ordered and bounded. Nothing here blocks: a task asks before it takes input, and is woken when the answer changes.
"""

from __future__ import annotations

from typing import Protocol

from .elements import Element


class InputChannel(Protocol):
    """The consumer's end. Opened with a `wake` callback that is called, from any thread, when an element arrives."""

    def poll(self) -> Element | None:
        """The next element, or None when there is none yet. Raises ChannelBroken after a gap, a duplicate or a lost peer."""
        ...

    def close(self) -> None: ...


class OutputChannel(Protocol):
    """The producer's end. Opened with a `wake` callback that is called, from any thread, when it is available again."""

    def is_available(self) -> bool:
        """Whether the task may take further input: false while earlier elements wait for credit."""
        ...

    def send(self, element: Element) -> None:
        """Queue one element; never blocks, never drops. Control elements need no credit but keep their place in line.

        Raises ChannelBroken when the consumer is lost.
        """
        ...

    def close(self) -> None: ...


class DataPlane(Protocol):
    """One per TaskManager: makes the ends of its channels."""

    @property
    def endpoint(self) -> str:
        """Where other TaskManagers connect to."""
        ...
