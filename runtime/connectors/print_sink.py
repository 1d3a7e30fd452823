"""PrintSink: each record on standard output, for looking at a stream. Flink: PrintSinkFunction."""

from __future__ import annotations

import sys
from typing import Any

from ...actors.operators.collector import Collector
from ...actors.operators.operator import Operator


class PrintSink(Operator):
    """Prints at once, so a record is printed again when it is replayed. With several subtasks each line says which. A
    prefix that ends with a letter or a digit, as a bare word does, is followed by a colon.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = f"{prefix}: " if prefix[-1:].isalnum() else prefix

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        subtask = f"{self.context.subtask_index + 1}> " if self.context.parallelism > 1 else ""
        sys.stdout.write("".join(f"{subtask}{self.prefix}{record}\n" for record in batch))
        sys.stdout.flush()
