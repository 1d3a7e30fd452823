"""Keys made by `hash` or `id`: they are others in the next process, and state is kept under the old ones.

Python seeds `hash` of texts in each process, with another number, and `id` is an address. What a savepoint or
checkpoint holds under such a key is not found again, without a word.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from ...messages.code_steps import codes_of, placed_steps

log = logging.getLogger(__name__)

_UNSTABLE = frozenset({"hash", "id"})


def warn_of_unstable_keys(keys: Iterable[Any]) -> None:
    """Of functions that call one of the two."""
    for key in keys:
        if key in (builtins.hash, builtins.id):
            _warn(key.__name__, key.__name__, "")
        elif isinstance(key, FunctionType):
            _look_at(key)


def _look_at(function: FunctionType) -> None:
    for code in codes_of(function.__code__):
        for step, place in placed_steps(code):
            if step.name == "LOAD_GLOBAL" and step.value in _UNSTABLE and step.value not in function.__globals__:
                return _warn(function.__qualname__, str(step.value), f" ({place})")


def _warn(function: str, called: str, place: str) -> None:
    log.warning(
        "key_by: %s%s takes %s(...) as a key, which is another one in each new process (%s): a job that goes on from a "
        "savepoint finds nothing under it. Take the value itself, or zlib.crc32(text.encode()) of it",
        function,
        place,
        called,
        "an address" if called == "id" else "Python seeds it in each, for texts",
    )
