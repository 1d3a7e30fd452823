"""Stacks: what runs on a slot's thread just now, for flame graphs, and on all threads, for dumps. `runtime/`
supplies them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..messages import SlotIndex, ThreadStack


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

    def dump(self) -> tuple[ThreadStack, ...]:
        """All threads of this process, by name. From any thread."""
        ...


class NoStacks:
    """Where a step takes no time, there is nothing to see."""

    def of(self, _slot: SlotIndex, _depth: int) -> tuple[StackFrame, ...]:
        return ()

    def dump(self) -> tuple[ThreadStack, ...]:
        return ()


NO_STACKS = NoStacks()
