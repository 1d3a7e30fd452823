"""Whose code a frame runs: Understudy's, a library's, or the user's."""

from __future__ import annotations

import sysconfig
from types import FrameType

from ..messages.whose_code import PACKAGE

_LIBRARIES = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_INSTALLED = ("/site-packages/", "/dist-packages/")


def is_our_frame(frame: FrameType) -> bool:
    """Understudy's."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == PACKAGE


def is_library(frame: FrameType) -> bool:
    """Understudy's, or the standard library's, or of an installed package."""
    return is_our_frame(frame) or is_library_file(frame.f_code.co_filename)


def is_library_file(path: str) -> bool:
    """The standard library's, or of an installed package."""
    return path.startswith(("<frozen ", *_LIBRARIES)) or any(folder in path for folder in _INSTALLED)
