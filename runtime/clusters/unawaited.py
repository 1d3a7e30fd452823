"""Unawaited: the base of what is returned in place of a value. Who takes it for the value reads what to write instead.

A web framework that makes JSON of it tries `dict(future)` first, and forgets what that raised when it fails at our lock
a step later: so it is a RuntimeWarning, too, as Python's of a coroutine that was never awaited.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NoReturn


class Unawaited:
    """The repr of a subclass says what it is, and how its value is got."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker says that there is no such method, which is better still

        def __iter__(self) -> NoReturn:
            text = f"wanted a value, found {self!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            raise TypeError(text)

        def __getitem__(self, key: object) -> NoReturn:
            raise TypeError(f"wanted a value of which [{key!r:.40}] can be taken, found {self!r}")
