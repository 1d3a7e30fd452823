"""SlotStacks: the Python frames that run on the threads of a TaskManager's slots, looked at from another thread.

It is `sys._current_frames`: no tracing, no signal, and the thread that is looked at does not notice. A thread that
computes outside of Python shows the frame that has called that. It keeps nothing.
"""

from __future__ import annotations

import sys
import threading
import traceback
from types import FrameType

from ...actors.stacks import StackFrame
from ...actors.tasks.task import Task
from ...messages import SlotIndex, ThreadStack
from ..library_code import is_library, is_our_frame

_STEP = Task.step.__code__
"""Frames outside of it are the same for all tasks."""
DUMP_DEPTH = 100
"""The innermost frames of a thread that a dump shows."""
MOST_THREADS = 500


class SlotStacks:
    """Of this process, which has one TaskManager."""

    def of(self, slot: SlotIndex, depth: int) -> tuple[StackFrame, ...]:
        name = f"stepping slot-{slot}"
        ident = next((thread.ident for thread in threading.enumerate() if thread.name == name), None)
        frame = None if ident is None else sys._current_frames().get(ident)
        found: list[StackFrame] = []
        while frame is not None and len(found) < depth and frame.f_code is not _STEP:
            found.append(_described(frame))
            frame = frame.f_back
        return tuple(reversed(found))

    def dump(self) -> tuple[ThreadStack, ...]:
        """Threads that Python knows; those of C libraries (ZeroMQ, Arrow) run no Python and have no stack here."""
        frames = sys._current_frames()
        threads = sorted(threading.enumerate(), key=lambda each: each.name)[:MOST_THREADS]
        return tuple(ThreadStack(each.name, _told(frames.get(each.ident or 0))) for each in threads)


def _told(frame: FrameType | None) -> str:
    if frame is None:
        return ""  # it has ended meanwhile
    found = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=DUMP_DEPTH)
    return "".join(reversed(found.format()))


def _described(frame: FrameType) -> StackFrame:
    code = frame.f_code
    kind = "understudy" if is_our_frame(frame) else "library" if is_library(frame) else "user"
    return StackFrame(code.co_qualname, code.co_filename, code.co_firstlineno, kind)
