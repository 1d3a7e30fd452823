"""A job with state of every kind, whose savepoint is stored beside the tests: later versions must restore it.

    python -m tests.runtime.clusters.stored_job FOLDER

stores such a savepoint below FOLDER, with state of the heap, of columns, of compiled operators and of operator lists.
"""

from __future__ import annotations

import operator
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle

from understudy import (
    Count,
    FoldingState,
    JobHandle,
    KeyedOperator,
    ListState,
    LocalCluster,
    MapState,
    Operator,
    OperatorListState,
    ReducingState,
    StreamEnvironment,
    Sum,
    ValueState,
)

KEYS = 24
COUNT = 12_000

Reading = dict[str, int]
"""Record `index` of sensor `sensor`."""


class EveryKind(KeyedOperator):
    """Each kind of keyed state holds the same: what has come for the key."""

    number = ValueState(int, default=0)
    indices = ListState(int)
    by_text = MapState(str, int)
    total = ReducingState(int, operator.add)
    folded = FoldingState(tuple, (0, 0), lambda held, index: (held[0] + 1, max(held[1], index)))

    def process(self, record: Reading, out: Any) -> None:
        self.number.update(self.number.value() + 1)
        self.indices.add(record["index"])
        self.by_text.put(f"record {record['index']}", record["index"])
        self.total.add(record["index"])
        self.folded.add(record["index"])

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            by_text = sorted(index for text, index in self.by_text.items() if text == f"record {index}")
            out.collect(
                (key, self.number.value(), sorted(self.indices.get()), by_text, self.total.get(), self.folded.get())
            )


class Compiled(KeyedOperator):
    """The same count and sum in machine code."""

    compiled = True
    held = ValueState(tuple, default=(0, 0))

    def process(self, record: Reading, out: Any) -> None:
        count, total = self.held.value()
        self.held.update((count + 1, total + record["index"]))
        if record["index"] == -1:
            out.collect((record["sensor"], count, total))

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            count, total = self.held.value()
            out.collect((key, count, total))


class Noting(Operator):
    """Keeps every hundredth index in the subtask's own list."""

    noted = OperatorListState(int)

    def process_batch(self, batch: Any, out: Any) -> None:
        for record in batch:
            if record["index"] % 100 == 0:
                self.noted.add(record["index"])

    def on_end(self, out: Any) -> None:
        out.collect(list(self.noted.get()))


def job(
    folder: Path, parallelism: int, count: int | None, rate: float | None, state_backend: str = "filesystem"
) -> StreamEnvironment:
    """`count`: the number of readings; None: without end."""
    env = StreamEnvironment(
        parallelism=parallelism,
        checkpoint_interval_ms=100,
        checkpoint_dir=str(folder),
        state_backend=state_backend,
    )
    numbers = env.generate(
        lambda index: {"sensor": index % KEYS, "index": index}, count, records_per_second=rate, name="numbers"
    )
    keyed = numbers.key_by("sensor")
    keyed.process(EveryKind, name="every kind").uid("every-kind").collect(name="kinds")
    keyed.process(Compiled, name="compiled").collect(name="machine code")
    keyed.aggregate("end", readings=Count(), indices=Sum("index"), name="columnar").collect(name="columns")
    numbers.process(Noting, name="noting").collect(name="notes")
    return env


def store(folder: Path) -> str:
    """Run the job until some checkpoints are complete, stop it with a savepoint, and return the savepoint's path."""
    with LocalCluster(2) as cluster:
        handle: JobHandle = cluster.submit(job(folder, 2, None, 2500.0), "stored")
        handle.ready().result(timeout=60)
        time.sleep(1)
        path = handle.stop_with_savepoint().result(timeout=30)
        handle.wait(timeout=30)
        return path


if __name__ == "__main__":
    import tests.runtime.clusters.stored_job as module

    cloudpickle.register_pickle_by_value(module)
    print(module.store(Path(sys.argv[1])))
