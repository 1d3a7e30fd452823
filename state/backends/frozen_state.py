"""FrozenState: one state as it was at the barrier, for the writer of a keyed snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

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
