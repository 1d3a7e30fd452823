"""NotCalled: the type of cluster classes. `with LocalCluster as cluster` lacks the brackets, and says so."""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, NoReturn


class NotCalled(ABCMeta):
    """A class as a context manager raises TypeError; its objects are those of any class."""

    if not TYPE_CHECKING:  # which finds the mistake by itself, where a class has no `__enter__`

        def __enter__(cls) -> NoReturn:
            raise _lacks_brackets(cls, "with")

        async def __aenter__(cls) -> NoReturn:
            raise _lacks_brackets(cls, "async with")

        def __exit__(cls, *_: object) -> None: ...

        async def __aexit__(cls, *_: object) -> None: ...


def _lacks_brackets(cls: type, word: str) -> TypeError:
    return TypeError(
        f"{word}: wanted a cluster, found the class {cls.__name__}: write `{word} {cls.__name__}(...) as cluster`"
    )
