"""A digest of many rows of four int64 that does not depend on their order: the sum of a mixed hash of each row.

Two multisets of rows with the same digest and the same size are the same, but for a chance of 2^-64. The peers compute
it too, so it is plain arithmetic modulo 2^64.
"""

from __future__ import annotations

from itertools import starmap
from struct import Struct
from typing import Any

import numpy as np

from .data import HALVES, Dataset, read

MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
MIXER = 0xBF58476D1CE4E5B9
MASK = (1 << 64) - 1
_ROW = Struct(f"={len(MULTIPLIERS)}q")


def digest(*columns: Any) -> int:
    """Of rows whose four columns are arrays of int64."""
    with np.errstate(over="ignore"):
        return _mixed_and_summed(
            sum(
                column.astype(np.int64).view(np.uint64) * np.uint64(by)
                for column, by in zip(columns, MULTIPLIERS, strict=True)
            )
        )


def digest_of_rows(rows: list[tuple[int, int, int, int]]) -> int:
    """The same of a list. NumPy's own way from tuples to an array would take twice as long as all of this."""
    table = np.frombuffer(b"".join(starmap(_ROW.pack, rows)), np.uint64)
    return _mixed_and_summed(table.reshape(-1, len(MULTIPLIERS)) @ np.array(MULTIPLIERS, np.uint64))


def _mixed_and_summed(weighted: Any) -> int:
    mixed = (weighted ^ (weighted >> np.uint64(32))) * np.uint64(MIXER)
    return int(np.sum(mixed ^ (mixed >> np.uint64(29)), dtype=np.uint64))


def combined(digests: Any) -> int:
    """The digest of all rows together, from the digests of parts."""
    return int(sum(digests)) & MASK


def running_answer(data: Dataset) -> int:
    """The digest of (key, count, change, maximum) for each row: how many rows its key has had, by how much its value
    differs from the one before (at first from 0), and the greatest so far.
    """
    return combined(digest(*_running(*_whole(data, half))) for half in range(HALVES))


def _whole(data: Dataset, half: int) -> tuple[Any, Any]:
    keys, values = zip(*read(data.half(half)), strict=True)
    return np.concatenate(keys), np.concatenate(values)


def _running(keys: Any, values: Any) -> tuple[Any, Any, Any, Any]:
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    counts = np.arange(1, len(keys) + 1) - starts[group]
    changes = np.where(first, values, values - np.concatenate([[0], values[:-1]]))
    above = int(values.max()) + 1
    maxima = np.maximum.accumulate(values + group * above) - group * above
    return keys, counts, changes, maxima
