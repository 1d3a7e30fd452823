"""ExpiringView: state with a TTL as it was at the barrier, for a SnapshotWriter, without what had expired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

from ..kinds.record_serializer import Convert
from .heap_blocks import FrozenEntries, KeyLayout, pieces
from .heap_view import StateView, packed_piece
from .timed_values import Shape, live


@dataclass(frozen=True, slots=True)
class ExpiringView(StateView):
    """`namespaces` hold pairs of values and times. Used up by `payloads`."""

    shape: Shape
    limit_ms: int

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        for namespace, entries in self.namespaces.items():
            while entries.values:  # so that what changed since is given up bit by bit
                left = self._left(entries.keys.pop(), entries.values.pop())
                for piece in pieces(left, max_parallelism, encode_key, self.encode, self.contents):
                    yield piece.group, packed_piece(namespace, piece)

    def _left(self, keys: list[Any], pairs: list[Any]) -> FrozenEntries:
        """What has not expired of one chunk."""
        shape, limit_ms = self.shape, self.limit_ms
        lives = [live(shape, pair, limit_ms) for pair in pairs]
        left = [pair for pair in lives if pair is not None]
        if not left:
            return FrozenEntries(KeyLayout(), 0)
        kept = list(compress(keys, [pair is not None for pair in lives]))
        values, times = [pair[0] for pair in left], [shape.stored(pair) for pair in left]
        return FrozenEntries(KeyLayout(), 0, [kept], [values], [times])
