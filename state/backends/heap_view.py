"""StateView: one state in dicts as it was at the barrier, for a SnapshotWriter."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from ...messages import UnsupportedValue, pack_plain, refusal_of, shown
from ..columns.packed_columns import unpacked
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from ..kinds.value_fit import Fit
from .heap_blocks import FrozenEntries, Piece, pieces


@dataclass(frozen=True, slots=True)
class StateView:
    """A state in dicts."""

    name: str
    kind: str
    schema: Schema
    encode: Convert
    namespaces: dict[Hashable, FrozenEntries]
    contents: Fit | None
    """What values must fit, if that is not known yet."""

    @property
    def is_empty(self) -> bool:
        return not self.namespaces

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        for namespace, entries in self.namespaces.items():
            for piece in pieces(entries, max_parallelism, encode_key, self.encode, self.contents):
                yield piece.group, packed_piece(namespace, piece)


def packed_piece(namespace: Hashable, piece: Piece) -> bytes:
    """The payload of a piece. Raises UnsupportedValue, which says of which key the value is."""
    try:
        values = piece.values if piece.times is None else ["tuples", piece.values, piece.times]
        return pack_plain([namespace, piece.keys, values])
    except UnsupportedValue:
        for key, value in zip(unpacked(piece.keys), unpacked(piece.values), strict=True):
            for what, part in (("key", key), ("value of key", value)):
                if why := refusal_of(part):
                    raise UnsupportedValue(f"{what} {shown(key)}: {why}") from None
        raise
