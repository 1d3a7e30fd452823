"""IndexedSource: base of sources whose records have indexes 0, 1, 2, …, which are dealt out to the subtasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .index_share import IndexShare
from .paced_source import PacedSource


class IndexedSource(PacedSource):
    """Indexes are dealt out in blocks: block b goes to subtask b mod p; after a change of parallelism first what others
    left. The offset is an IndexShare. A subclass defines `read`, which takes from `_share` once at most.

    Where indexes go back, as they may after a change of parallelism, each run of them is a split with a watermark of
    its own until the attempt ends: so no record is late that was not so before.
    """

    splits_only_after_rescale = True

    _share: IndexShare
    _has_splits = False

    @property
    def _block_rows(self) -> int:
        """The size of a block."""
        return 1

    def open(self) -> None:
        super().open()
        self._has_splits = False
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism, self._block_rows)

    def offset(self) -> dict[str, Any]:
        return self._share.to_plain()

    def seek(self, offset: dict[str, Any]) -> None:
        """Blocks keep the size that they were dealt out with, whatever `batch_rows` is now."""
        self._share = IndexShare.from_plain(offset, self.context.parallelism)
        self._has_splits = self._share.goes_back

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        where = self.context
        self._share = IndexShare.dealt_out(offsets, where.subtask_index, where.parallelism, self._block_rows)
        self._has_splits = self._share.goes_back

    def current_splits(self) -> Collection[str] | None:
        return self._share.names if self._has_splits else None

    def _split_read(self) -> str | None:
        return self._share.taken_of if self._has_splits else None
