"""Absent names: attributes that a class does not have. An access, of the class or of an instance, raises an error that
says what to write. A `__getattr__` would do for instances alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn


class _Absent:
    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(self._text)


def name_absent(cls: type, what: str, instead_of: Mapping[str, str]) -> None:
    """`instead_of`: names as Python has them, which are absent in camel case too, and what to write in their place."""
    for name, instead in instead_of.items():
        first, *more = name.split("_")
        for each in (name, first + "".join(map(str.capitalize, more))):
            setattr(cls, each, _Absent(f"{what} has no {each!r}: {instead}"))
