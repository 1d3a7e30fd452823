"""The two dataflows of Bytewax. Keys are strings, as Bytewax wants them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import HALVES, Dataset
from benchmarks.digest import combined, digest_of_rows
from benchmarks.side import note

bytewax_inputs: Any = importlib.import_module("bytewax.inputs")
bytewax_outputs: Any = importlib.import_module("bytewax.outputs")
operators: Any = importlib.import_module("bytewax.operators")
dataflow: Any = importlib.import_module("bytewax.dataflow")

AGGREGATED_ROWS = 500_000
RECORDS = 8192


class Part(bytewax_inputs.StatefulSourcePartition):  # type: ignore[misc]
    """One half of the files; resumes at a batch."""

    def __init__(self, data: Dataset, half: int, rows: int, turn: Callable[[Any], list[Any]], resume: int) -> None:
        self._batches = self._read(data.half(half), rows)
        self._turn, self._next = turn, resume
        for _ in range(resume):
            next(self._batches)

    def next_batch(self) -> list[Any]:
        batch = next(self._batches)
        self._next += 1
        return self._turn(batch)

    def snapshot(self) -> int:
        return self._next

    @staticmethod
    def _read(files: list[Path], rows: int) -> Iterator[pa.RecordBatch]:
        for path in files:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(rows)


class Halves(bytewax_inputs.FixedPartitionedSource):  # type: ignore[misc]
    """Batches of `rows` rows, each turned into items by `turn`."""

    def __init__(self, data: Dataset, out: Path, rows: int, turn: Callable[[Any], list[Any]]) -> None:
        self._data, self._out, self._rows, self._turn = data, out, rows, turn

    def list_parts(self) -> list[str]:
        return [str(half) for half in range(HALVES)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Part:
        note(self._out, "started", for_part)
        return Part(self._data, int(for_part), self._rows, self._turn, resume_state or 0)


class Kept(bytewax_outputs.StatelessSinkPartition):  # type: ignore[misc]
    """Keeps what arrives, as `take` says, and writes it at the end."""

    def __init__(self, out: Path, name: str) -> None:
        self._out, self._name = out, name
        self._parts: list[Any] = []
        self._rows = self._digest = 0

    def write_batch(self, items: list[Any]) -> None:
        if self._name.startswith("totals"):
            self._parts.append(np.array([row for _, row in items], dtype="<i8"))
        else:
            self._rows += len(items)
            self._digest = combined([self._digest, digest_of_rows([row for _, row in items])])

    def close(self) -> None:
        note(self._out, "ended", self._name)
        if self._name.startswith("totals"):
            np.concatenate(self._parts or [np.empty((0, 3), "<i8")]).tofile(self._out / self._name)
        else:
            (self._out / self._name).write_text(f"{self._rows} {self._digest}")


class Outcome(bytewax_outputs.DynamicSink):  # type: ignore[misc]
    def __init__(self, out: Path, name: str) -> None:
        self._out, self._name = out, name

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Kept:
        return Kept(self._out, f"{self._name}-{worker_index}")


class Total(operators.StatefulBatchLogic):  # type: ignore[misc]
    """Count and sum of one key, emitted at the end."""

    def __init__(self, resumed: tuple[int, int, int] | None) -> None:
        self._key, self._count, self._sum = resumed or (0, 0, 0)

    def on_batch(self, values: list[tuple[int, int, int]]) -> tuple[Any, bool]:
        for self._key, count, total in values:
            self._count += count
            self._sum += total
        return (), False

    def on_eof(self) -> tuple[Any, bool]:
        return ((self._key, self._count, self._sum),), True

    def snapshot(self) -> tuple[int, int, int]:
        return self._key, self._count, self._sum


class Running(operators.StatefulBatchLogic):  # type: ignore[misc]
    """Each record's number within its key, its difference from the one before, and the greatest so far."""

    def __init__(self, resumed: tuple[int, int, int] | None) -> None:
        self._state = resumed

    def on_batch(self, values: list[tuple[int, int]]) -> tuple[Any, bool]:
        count, last, maximum = self._state or (0, 0, values[0][1])
        results = []
        for key, value in values:
            count += 1
            if value > maximum:
                maximum = value
            results.append((key, count, value - last, maximum))
            last = value
        self._state = (count, last, maximum)
        return results, False

    def snapshot(self) -> tuple[int, int, int] | None:
        return self._state


def running(state: tuple[int, int, int] | None, record: tuple[int, int]) -> tuple[Any, Any]:
    """The same for one record: the state afterwards, and the result."""
    key, value = record
    count, last, maximum = state or (0, 0, value)
    count += 1
    if value > maximum:
        maximum = value
    return (count, value, maximum), (key, count, value - last, maximum)


def keyed_aggregate(data: Dataset, out: Path, call: str) -> Any:
    """`call` makes no difference here."""
    flow = dataflow.Dataflow("keyed-aggregate")
    partials = operators.input("rows", flow, Halves(data, out, AGGREGATED_ROWS, _partials))
    totals = operators.stateful_batch("totals", partials, Total)
    operators.output("out", totals, Outcome(out, "totals"))
    return flow


def stateful_function(data: Dataset, out: Path, call: str) -> Any:
    """The function is called per "record", or with a key's records of a "batch" together."""
    flow = dataflow.Dataflow("stateful-function")
    rows = operators.input("rows", flow, Halves(data, out, RECORDS, _records))
    if call == "record":
        results = operators.stateful_map("running", rows, running)
    else:
        results = operators.stateful_batch("running", rows, Running)
    operators.output("out", results, Outcome(out, "digest"))
    return flow


FLOWS = {"keyed-aggregate": keyed_aggregate, "stateful-function": stateful_function}


def _partials(batch: pa.RecordBatch) -> list[Any]:
    """One item per key of the batch."""
    table = pa.Table.from_batches([batch]).group_by("key").aggregate([("value", "count"), ("value", "sum")])
    keys, counts, sums = (table[name].to_pylist() for name in ("key", "value_count", "value_sum"))
    return list(zip(map(str, keys), zip(keys, counts, sums, strict=True), strict=True))


def _records(batch: pa.RecordBatch) -> list[Any]:
    keys = batch["key"].to_pylist()
    return list(zip(map(str, keys), zip(keys, batch["value"].to_pylist(), strict=True), strict=True))
