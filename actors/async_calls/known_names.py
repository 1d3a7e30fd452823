"""known_names: settings that are called with a name which they do not have say which one is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def meant(found: str, known: Iterable[str]) -> str:
    """The end of a text about a wrong name: the known one that is most like it; empty if none is."""
    close = get_close_matches(found, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def known_names(cls: type[T]) -> type[T]:
    """Of a dataclass: its TypeError for an unknown name says which one may be meant, and which there are."""
    made: Callable[..., None] = cls.__init__
    known: tuple[str, ...] = tuple(cls.__dataclass_fields__)  # type: ignore[attr-defined]

    @wraps(made)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                raise TypeError(f"{cls.__name__}: found {name}; wanted some of {', '.join(known)}{meant(name, known)}")
        made(self, *values, **named)

    cls.__init__ = checked  # type: ignore[method-assign]
    return cls
