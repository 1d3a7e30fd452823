"""Answers as digests: a number per row, and their sum, which does not depend on the order of the rows.

All sides compute the same, so it is plain arithmetic modulo 2^64; see Nexmark.java too. The word of a number is itself,
that of a time its milliseconds, of a decimal its digits, of a text its length and its first and last eight bytes.
Tests compare whole rows; this is for millions of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from .draws import Words, word

NULL = 0x6E756C6C
TEXT_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Of a text's length, its first and its last eight bytes."""
MIXER = 0xBF58476D1CE4E5B9
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)


@dataclass(frozen=True)
class Digest:
    """Of a multiset of rows."""

    rows: int
    sum: int

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.sum + other.sum) & (1 << 64) - 1)

    def __str__(self) -> str:
        return f"{self.rows} rows, digest {self.sum:016x}"


EMPTY = Digest(0, 0)


def digest_of(numbers: Words) -> Digest:
    return Digest(len(numbers), int(np.sum(numbers, dtype=np.uint64)))


def digest_of_table(table: pa.Table, columns: Sequence[str]) -> Digest:
    return sum((digest_of(row_words(batch, columns)) for batch in table.to_batches()), EMPTY)


def write_answer(out: Path, found: Digest, part: int = 0) -> None:
    (out / f"answer-{part}").write_text(f"{found.rows} {found.sum}")


def answer_in(out: Path) -> Digest | None:
    """The digest of what all parts have written; None when there is none."""
    parts = [path.read_text().split() for path in sorted(out.glob("answer-*"))]
    found = [Digest(int(rows), int(number)) for rows, number in parts]
    return sum(found, EMPTY) if found else None


def row_words(batch: pa.RecordBatch, columns: Sequence[str]) -> Words:
    """A word for each row, uint64."""
    total = np.zeros(len(batch), np.uint64)
    for position, name in enumerate(columns):
        total += column_words(batch.column(name)) * np.uint64(multiplier(position))
    total = (total ^ (total >> np.uint64(32))) * np.uint64(MIXER)
    return total ^ (total >> np.uint64(29))


def multiplier(position: int) -> int:
    """By what the word of the column at this position is multiplied; odd."""
    return word(1_000 + position) | 1


def column_words(column: pa.Array) -> Words:
    """A word for each value, uint64. Raises TypeError for types that no query gives."""
    kind = column.type
    if pt.is_dictionary(kind):
        return column_words(column.dictionary_decode())
    if column.null_count:
        values = column_words(column.fill_null(_zero(kind)))
        return np.where(np.asarray(column.is_null()), np.uint64(NULL), values)
    if pt.is_string(kind) or pt.is_large_string(kind):
        return _text_words(column)
    if pt.is_timestamp(kind):
        return _numbers(column.cast(pa.timestamp("ms")).view(pa.int64()))
    if pt.is_decimal(kind):
        return _low_halves(column)
    if pt.is_integer(kind):
        return _numbers(column.cast(pa.int64()))
    raise TypeError(f"wanted integers, decimals, times or texts, found {kind}")


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar("" if pt.is_string(kind) or pt.is_large_string(kind) else 0).cast(kind)


def _numbers(column: pa.Array) -> Words:
    return np.asarray(column).view(np.uint64)


def _low_halves(column: pa.Array) -> Words:
    """Of 128-bit decimals."""
    values = np.frombuffer(column.cast(pa.decimal128(38, column.type.scale)).buffers()[1], np.uint64)
    return values[2 * column.offset : 2 * (column.offset + len(column)) : 2]


def _text_words(column: pa.Array) -> Words:
    kind = np.int64 if pt.is_large_string(column.type) else np.int32
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if len(text) < 8:
        text = np.concatenate([text, np.zeros(8, np.uint8)])
    eights: Words = np.ndarray((len(text) - 7,), np.uint64, text, strides=(1,))
    starts, lengths = ends[:-1], np.diff(ends)
    if lengths.min(initial=8) >= 8:
        first, last = eights[starts], eights[ends[1:] - 8]
    else:
        at = np.minimum(starts, len(eights) - 1)
        first = (eights[at] >> (8 * (starts - at)).astype(np.uint64)) & _MASKS[np.minimum(lengths, 8)]
        last = np.where(lengths >= 8, eights[np.maximum(ends[1:] - 8, 0)], first)
    by_length, by_first, by_last = (np.uint64(number) for number in TEXT_MULTIPLIERS)
    mixed: Words = lengths.astype(np.uint64) * by_length + first * by_first + last * by_last
    return mixed
