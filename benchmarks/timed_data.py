"""The rows of `data.py` with an event time each, and the right answers of windows over them.

Times are int64 milliseconds from START_MS on, `RATE` rows a second of event time in all, in order but for a jitter of
up to JITTER_MS, drawn from a seed. A reader of one half's files, in their order, therefore sees no time that is more
than JITTER_MS behind an earlier one; all sides allow DELAY_MS. As raw pairs they are the key, and
time and value in one number: `(time - START_MS) * VALUES + value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .data import FILE_ROWS, HALVES, LAYOUT, SEED, SKEW, VALUES, Dataset, dataset, make_once, pairs_of, read
from .digest import combined, digest

RATE = 100_000
JITTER_MS = 200
DELAY_MS = 1_000
START_MS = 1_700_000_000_000

SIZE_MS, SLIDE_MS, GAP_MS = 10_000, 2_000, 2_000
"""Of the windows: tumbling, sliding ones of the same size, and sessions."""
SHAPES = ("tumbling", "sliding", "session")

TIMERS = "timers"
"""In place of a shape: one timer for each key and SIZE_MS, at the last ms, which numbers the key's timers."""

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("time", pa.int64())])


@dataclass(frozen=True)
class Answer:
    """The number of results, and the digest of their (key, window end, count, sum)."""

    outputs: int
    digest: str


def timed_dataset(cache: Path, rows: int, keys: int, rate: int = RATE) -> Dataset:
    """The data, made now unless it is there. `rows` must be even."""
    folder = cache / "data" / f"v{LAYOUT}-timed{rate}-zipf{SKEW}-{keys}keys-{rows}rows"
    make_once(folder, lambda into: _write(dataset(cache, rows, keys), into, rate))
    return Dataset(folder, rows, keys)


def packed_pairs(data: Dataset) -> Path:
    """The same rows as pairs of key and packed time and value, in a folder with one file per half."""
    return pairs_of(data, _packed)


def _packed(half: list[Path]) -> Iterator[tuple[Any, Any]]:
    for keys, values, times in _read(half):
        yield keys, (times - START_MS) * VALUES + values


def right_answer(data: Dataset, shape: str) -> Answer:
    """Worked out here by the definition, and kept beside the data."""
    kept = data.folder / f"answer-{shape}.npy"
    if not kept.exists():
        made = [_results(shape, *part) for part in _halves(data)]
        outputs, found = sum(len(part[0]) for part in made), combined(digest(*part) for part in made)
        np.save(kept, np.array([outputs, found], np.uint64))
    outputs, found = np.load(kept).tolist()
    return Answer(int(outputs), f"{int(found):016x}")


def _write(plain: Dataset, folder: Path, rate: int) -> None:
    (folder / "parquet").mkdir(parents=True)
    for half in range(HALVES):
        index = 0
        for chunk, (path, (keys, values)) in enumerate(zip(plain.half(half), read(plain.half(half)), strict=True)):
            random = np.random.default_rng([SEED, 7, half, chunk])
            in_order = START_MS + JITTER_MS + np.arange(index, index + len(keys)) * (1000 * HALVES) // rate
            times = in_order - random.integers(0, JITTER_MS, len(keys))
            index += len(keys)
            table = pa.table([keys, values, times], schema=SCHEMA)
            pq.write_table(table, folder / "parquet" / path.name, row_group_size=FILE_ROWS)


def _read(files: list[Path]) -> Iterator[tuple[Any, Any, Any]]:
    for path in files:
        table = pq.read_table(path)
        yield tuple(table[name].to_numpy() for name in SCHEMA.names)


def _halves(data: Dataset) -> Iterator[tuple[Any, Any, Any]]:
    """Keys, values and times of each half: no key is in both."""
    for half in range(HALVES):
        parts = list(zip(*_read(data.half(half)), strict=True))
        yield tuple(np.concatenate(part) for part in parts)  # type: ignore[misc]


def _results(shape: str, keys: Any, values: Any, times: Any) -> tuple[Any, Any, Any, Any]:
    """Keys, ends, counts and sums; of timers keys, times, the number of each within its key, and the time since the one
    before, or since 0.
    """
    if shape == TIMERS:
        return _timer_results(keys, times)
    if shape == "session":
        return _session_results(keys, values, times)
    return _aligned_results(shape, keys, values, times)


def _aligned_results(shape: str, keys: Any, values: Any, times: Any) -> tuple[Any, Any, Any, Any]:
    slide = SIZE_MS if shape == "tumbling" else SLIDE_MS
    keys, panes, counts, sums = _grouped(keys, times // slide, np.ones_like(keys), values)
    windows = SIZE_MS // slide
    repeated = [np.tile(column, windows) for column in (keys, counts, sums)]
    last_panes = np.concatenate([panes + window for window in range(windows)])
    keys, last_panes, counts, sums = _grouped(repeated[0], last_panes, *repeated[1:])
    return keys, (last_panes + 1) * slide, counts, sums


def _timer_results(keys: Any, times: Any) -> tuple[Any, Any, Any, Any]:
    keys, spans, _, _ = _grouped(keys, times // SIZE_MS, np.zeros_like(keys), np.zeros_like(keys))
    ends = (spans + 1) * SIZE_MS - 1
    is_first = np.concatenate(([True], keys[1:] != keys[:-1]))
    starts = np.flatnonzero(is_first)
    numbers = np.arange(1, len(keys) + 1) - starts[np.cumsum(is_first) - 1]
    return keys, ends, numbers, ends - np.where(is_first, 0, np.concatenate(([0], ends[:-1])))


def _grouped(keys: Any, panes: Any, counts: Any, sums: Any) -> tuple[Any, Any, Any, Any]:
    order = np.lexsort((panes, keys))
    keys, panes = keys[order], panes[order]
    starts = np.flatnonzero(np.concatenate(([True], (keys[1:] != keys[:-1]) | (panes[1:] != panes[:-1]))))
    return keys[starts], panes[starts], np.add.reduceat(counts[order], starts), np.add.reduceat(sums[order], starts)


def _session_results(keys: Any, values: Any, times: Any) -> tuple[Any, Any, Any, Any]:
    order = np.lexsort((times, keys))
    keys, values, times = keys[order], values[order], times[order]
    begins = np.concatenate(([True], (keys[1:] != keys[:-1]) | (np.diff(times) > GAP_MS)))
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(keys))
    return keys[starts], times[ends - 1] + GAP_MS, ends - starts, np.add.reduceat(values, starts)
