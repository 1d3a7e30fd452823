"""The rows that every benchmark and every peer reads: int64 keys with a Zipf skew, int64 values, as Parquet files.

Deterministic: the same number of rows and keys is the same data to the byte, so it is made once and kept in a folder of
the cache. The files alternate between two halves of the keys, and all rows of a key are in its half: two readers that
deal the files out in turn see each key's rows in one order, whatever they do afterwards. That is what makes an answer
that depends on the order (a key's latest value) exact. For peers that read files in no order there are the same row
groups as one Parquet file per half, and as raw int64 pairs, for the least that reading can cost.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HALVES = 2
FILE_ROWS = 500_000
SKEW = 1.1
VALUES = 1_000_000
SEED = 20_240_229
LAYOUT = 1
"""Part of the folder's name: data of an older layout is left alone and not used."""

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])


@dataclass(frozen=True)
class Dataset:
    """One folder of rows. `files`, in order, belong to the halves 0, 1, 0, 1, …"""

    folder: Path
    rows: int
    keys: int

    @property
    def parquet(self) -> Path:
        return self.folder / "parquet"

    @property
    def files(self) -> list[Path]:
        return sorted(self.parquet.glob("*.parquet"))

    def half(self, half: int) -> list[Path]:
        return self.files[half::HALVES]

    @property
    def totals(self) -> Any:
        """The right answer to count and sum per key: int64 rows of key, count, sum, by ascending key."""
        return np.load(self.folder / "totals.npy")


def dataset(cache: Path, rows: int, keys: int = 100_000, skew: float = SKEW) -> Dataset:
    """The data, made now unless it is there. `rows` must be even."""
    if rows < HALVES or rows % HALVES:
        raise ValueError(f"rows: wanted an even number of at least {HALVES}, found {rows}")
    folder = cache / "data" / f"v{LAYOUT}-zipf{skew}-{keys}keys-{rows}rows"
    make_once(folder, lambda into: _write(Dataset(into, rows, keys), skew))
    return Dataset(folder, rows, keys)


def make_once(folder: Path, write: Callable[[Path], None]) -> None:
    """Write its files, unless it is there."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            write(Path(name))
            shutil.copytree(name, folder, dirs_exist_ok=True)


def whole_halves(data: Dataset) -> Path:
    """A folder with one Parquet file per half, of the same row groups. Made now unless it is there."""
    folder = data.folder / "halves"

    def write(into: Path) -> None:
        for half in range(HALVES):
            files = data.half(half)
            with pq.ParquetWriter(into / f"half-{half}.parquet", pq.read_schema(files[0])) as writer:
                for path in files:
                    writer.write_table(pq.read_table(path), row_group_size=FILE_ROWS)

    make_once(folder, write)
    return folder


def raw_pairs(data: Dataset) -> Path:
    """The same rows as `pairs_of` has them."""
    return pairs_of(data, read)


def pairs_of(data: Dataset, read_half: Callable[[list[Path]], Iterable[tuple[Any, Any]]]) -> Path:
    """A folder with one file per half of little-endian int64 pairs: (key, value, key, value, …), from two columns at a
    time. Made now unless it is there.
    """
    folder = data.folder / "pairs"
    folder.mkdir(exist_ok=True)
    for half in range(HALVES):
        path, part = folder / f"half-{half}.bin", folder / f".half-{half}.part"
        if not path.exists():
            with part.open("wb") as file:
                for pair in read_half(data.half(half)):
                    file.write(np.column_stack(pair).astype("<i8").tobytes())
            part.rename(path)
    return folder


def read(files: list[Path]) -> Iterator[tuple[Any, Any]]:
    """Keys and values, file by file."""
    for path in files:
        table = pq.read_table(path)
        yield table["key"].to_numpy(), table["value"].to_numpy()


def _write(data: Dataset, skew: float) -> None:
    """All files, and the answer."""
    data.parquet.mkdir(parents=True)
    counts, sums = np.zeros(data.keys, np.int64), np.zeros(data.keys, np.int64)
    per_half = data.rows // HALVES
    halves = [_half_sampler(*half) for half in _halves(data.keys, skew)]
    for chunk, start in enumerate(range(0, per_half, FILE_ROWS)):
        for half, sample in enumerate(halves):
            random = np.random.default_rng([SEED, half, chunk])
            rows = min(FILE_ROWS, per_half - start)
            keys, values = sample(random, rows), random.integers(0, VALUES, rows)
            np.add.at(counts, keys, 1)
            np.add.at(sums, keys, values)
            path = data.parquet / f"part-{chunk:05d}-{half}.parquet"
            pq.write_table(pa.table([keys, values], schema=SCHEMA), path, row_group_size=FILE_ROWS)
    there = np.flatnonzero(counts)
    np.save(data.folder / "totals.npy", np.column_stack([there, counts[there], sums[there]]))


def _half_sampler(keys: Any, weights: Any) -> Any:
    """A function (random, rows) that draws keys of one half."""
    cumulated = np.cumsum(weights / weights.sum())
    return lambda random, rows: keys[np.minimum(np.searchsorted(cumulated, random.random(rows)), len(keys) - 1)]


def _halves(keys: int, skew: float) -> list[tuple[Any, Any]]:
    """Keys and weights of each half. A key goes to the lighter half, so both weigh the same up to the last key."""
    weights = 1.0 / np.arange(1, keys + 1) ** skew
    names = np.random.default_rng(SEED).permutation(keys).astype(np.int64)
    heavier = 0.0
    of_half = np.zeros(keys, np.int8)
    for rank, weight in enumerate(weights):
        of_half[rank] = heavier > 0
        heavier += -weight if of_half[rank] else weight
    return [(names[of_half == half], weights[of_half == half]) for half in range(HALVES)]
