"""AnswerSink: keeps of a query's result only what its check needs, so that writing files is not what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy import Operator, OperatorListState

from .answers import EMPTY, Digest, digest_of, row_words, write_answer

_COMPACTED_AT = 1 << 21


class AnswerSink(Operator):
    """Writes a digest of all rows to `out` at the end, or with `key` of the last row of each key: `answers.answer_in`.

    `durable`: what it has is part of each checkpoint, so that the answer is exact after a failure too. A checkpoint
    then takes 16 bytes per key, so a job with many keys that does not fail goes without.
    """

    takes = "columns"
    kept = OperatorListState(bytes, mode="split", name="answer")

    def __init__(self, out: Path, compared: Sequence[str], key: Sequence[str] = (), *, durable: bool = False) -> None:
        self._out, self._compared, self._key, self._durable = out, tuple(compared), tuple(key), durable

    def open(self) -> None:
        self._total = EMPTY
        self._pairs: list[Any] = []
        """Of updates: arrays of shape (n, 2), a word for the key and one for the row, in order."""
        self._waiting = 0
        for item in self.kept.get():
            pairs = np.frombuffer(item, np.uint64).reshape(-1, 2)
            if self._key:
                self._pairs.append(pairs)
            else:
                self._total += Digest(*map(int, pairs[0]))

    def process_batch(self, batch: pa.RecordBatch, out: Any) -> None:
        rows = row_words(batch, self._compared)
        if not self._key:
            self._total += digest_of(rows)
            return
        self._pairs.append(np.column_stack([row_words(batch, self._key), rows]))
        self._waiting += len(rows)
        if self._waiting > _COMPACTED_AT:
            self._last_pairs()

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        if self._durable:
            kept = self._last_pairs() if self._key else np.array([[self._total.rows, self._total.sum]], np.uint64)
            self.kept.update([kept.tobytes()])

    def on_end(self, out: Any) -> None:
        total = digest_of(self._last_pairs()[:, 1]) if self._key else self._total
        write_answer(self._out, total, self.context.subtask_index)

    def _last_pairs(self) -> Any:
        """The last one of each key, which is all that is kept."""
        pairs = np.concatenate([np.empty((0, 2), np.uint64), *self._pairs])
        _, places = np.unique(pairs[::-1, 0], return_index=True)
        last = pairs[len(pairs) - 1 - places]
        self._pairs, self._waiting = [last], 0
        return last
