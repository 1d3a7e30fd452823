"""Which frames of a traceback say nothing to a user: those of the library, behind the call that it refuses.

A refusal says in its text what was found and what to write; where in the library that was noticed helps nobody. What
passes code of the user on its way keeps all frames, as does an error that the library does not make: that may be a
mistake of ours.
"""

from __future__ import annotations

from types import TracebackType

from .whose_code import PACKAGE, is_ours

_MACHINERY = frozenset({PACKAGE, "asyncio", "concurrent", "contextlib", "pykka"})
"""What a call of the user goes through."""


def end_at_the_caller(error: BaseException) -> None:
    """If this is the library's word about a call, or the call does not fit, let its traceback end with the line that
    has called.

    For the function that was called, which has caught it. A bare `raise` then adds no frame of this function.
    """
    frames = error.__traceback__
    if is_the_librarys_word(error) or frames is None or frames.tb_next is None:  # it was raised by the call itself
        error.__traceback__ = None


def is_the_librarys_word(error: BaseException) -> bool:
    """Whether the library made it, and it has passed no code of the user."""
    return is_ours(type(error)) and _is_ours_all_through(error.__traceback__)


def _is_ours_all_through(frames: TracebackType | None) -> bool:
    while frames is not None:
        if frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _MACHINERY:
            return False
        frames = frames.tb_next
    return True
