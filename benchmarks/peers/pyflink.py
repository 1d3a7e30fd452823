"""PyFlink's DataStream API: stateful-function in Python, its process mode or its thread mode.

Reads and writes through the same Java connectors as flink.py, as Flink's documentation tells users to.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.side import Order, answer, elapsed, read_digests, received_order

from . import java_side

ROWS = """CREATE TABLE numbers (`key` BIGINT, `value` BIGINT) WITH (
    'connector' = 'filesystem', 'path' = '{path}', 'format' = 'pairs', 'pairs.out' = '{out}')"""
DIGESTS = """CREATE TABLE digests (`key` BIGINT, `count` BIGINT, `change` BIGINT, `maximum` BIGINT) WITH (
    'connector' = 'outcome', 'keeps' = 'digest', 'out' = '{out}')"""


def run(order: Order) -> None:
    pyflink: Any = importlib.import_module("pyflink")
    # Thread mode embeds an interpreter that does not know of the virtual environment.
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), sysconfig.get_path("purelib")])
    jar = java_side.jar(Path(pyflink.__file__).parent, Path(order.options["cache"]))
    tables = tables_of(order, jar, {"python.execution-mode": order.options["mode"]})
    out = order.out / "measured"
    out.mkdir()
    tables.execute_sql(ROWS.format(path=Path(order.options["input"]).as_uri(), out=out))
    tables.execute_sql(DIGESTS.format(out=out))
    types = importlib.import_module("pyflink.common").Types
    names, kinds = ["key", "count", "change", "maximum"], [types.LONG()] * 4
    results = (
        tables.to_data_stream(tables.from_path("numbers"))
        .key_by(lambda row: row[0], key_type=types.LONG())
        .process(_function(), output_type=types.ROW_NAMED(names, kinds))
    )
    tables.from_data_stream(results).execute_insert("digests").wait()
    answer(elapsed(out), ["apache-flink"], **read_digests(out))


def tables_of(order: Order, jar: Path, more: dict[str, str]) -> Any:
    """A table environment with our connectors. `more`: settings of Flink that come before those here."""
    settings = importlib.import_module("pyflink.common").Configuration()
    chosen = {
        "parallelism.default": "2",
        "taskmanager.numberOfTaskSlots": "2",
        "pipeline.jars": jar.as_uri(),
        "pipeline.object-reuse": "true",
        "python.executable": sys.executable,
        "python.state.cache-size": "200000",
        "python.fn-execution.bundle.size": "100000",
        "restart-strategy.type": "disable",
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (order.out / "checkpoints").as_uri(),
    }
    for name, value in (chosen | more).items():
        settings.set_string(name, value)
    streaming = importlib.import_module("pyflink.datastream").StreamExecutionEnvironment
    environment = streaming.get_execution_environment(settings)
    return importlib.import_module("pyflink.table").StreamTableEnvironment.create(environment)


def _function() -> Any:
    """An instance; the class is made here because its base is not there in other environments."""
    datastream: Any = importlib.import_module("pyflink.datastream")
    state: Any = importlib.import_module("pyflink.datastream.state")
    common: Any = importlib.import_module("pyflink.common")
    long = common.Types.LONG()

    class Running(datastream.KeyedProcessFunction):  # type: ignore[misc]
        """Each record's number within its key, its difference from the one before, and the greatest so far."""

        def open(self, context: Any) -> None:
            kind = common.Types.TUPLE([long, long, long])
            self.seen = context.get_state(state.ValueStateDescriptor("seen", kind))

        def process_element(self, row: Any, context: Any) -> Any:
            key, value = row[0], row[1]
            count, last, maximum = self.seen.value() or (0, 0, value)
            if value > maximum:
                maximum = value
            self.seen.update((count + 1, value, maximum))
            yield common.Row(key, count + 1, value - last, maximum)

    return Running()


if __name__ == "__main__":
    run(received_order())
