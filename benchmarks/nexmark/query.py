"""A query: how our job computes it, and what of its result is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy import DataStream

from .streams import Streams


@dataclass(frozen=True)
class Query:
    """`build` gives a stream of columns. With `key` each row replaces the one before of the same key; without, rows are
    only added. `compared`: the columns that must be right, key columns first; others depend on how ties are broken.
    `writes_files`: the result is CSV files, which are read to be compared.
    """

    name: str
    build: Callable[[Streams], DataStream]
    compared: tuple[str, ...]
    key: tuple[str, ...] = ()
    writes_files: bool = False

    def __post_init__(self) -> None:
        if self.compared[: len(self.key)] != self.key:
            raise ValueError(f"{self.name}: wanted the key {self.key} at the head of what is compared")
