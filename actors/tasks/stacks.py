"""Stacks: what runs on a slot's thread just now, for flame graphs. `runtime/` supplies them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...messages import SlotIndex


class StackFrame(NamedTuple):
    """A frame of Python."""

    function: str
    """As in `Count.process`."""
    path: str
    line: int
    """Where the function begins."""
    kind: str
    """"user", "understudy" or "library"."""


class Stacks(Protocol):
    def of(self, slot: SlotIndex, depth: int) -> tuple[StackFrame, ...]:
        """The innermost frames, at most this number, the outermost of them first; empty when no thread is known. From
        any thread, and it holds none up.
        """
        ...


class NoStacks:
    """Where a step takes no time, there is nothing to see."""

    def of(self, _slot: SlotIndex, _depth: int) -> tuple[StackFrame, ...]:
        return ()


NO_STACKS = NoStacks()
