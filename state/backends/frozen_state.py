"""FrozenState: one state as it was at the barrier, for the writer of a keyed snapshot; and who gives one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Protocol

from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema


class FrozenState(Protocol):
    """One state as it was at the barrier."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def is_empty(self) -> bool: ...

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        """Key group and payload, any number for each group; called once. Raises UnsupportedValue, InvalidKey, or
        WrongValue.
        """


class Stored(Protocol):
    """What snapshots hold under the name of a part: a StoredState."""

    def entries(self) -> Iterator[tuple[Hashable, list[Any], list[Any]]]:
        """(namespace, keys, values), block by block. Raises MalformedMessage."""
        ...


class KeptState(Protocol):
    """A part of an operator's keyed state that is no declared state: it is frozen with every snapshot."""

    @property
    def name(self) -> str: ...

    def load(self, stored: Stored) -> None:
        """Add what a snapshot holds. Raises MalformedMessage."""

    def freeze(self) -> FrozenState:
        """All that it holds now."""
        ...
