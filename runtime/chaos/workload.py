"""The job of a chaos run: paced records, numbered within their keys after a shuffle, into files.

Record i belongs to key i % `KEYS`, and every key comes from one source subtask, so what must be committed is known
record by record. A record that was lost, doubled or overtaken, or state that does not fit the sources' offsets, shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...actors.flow.elements import Batch
from ...actors.operators import Collector, KeyedOperator
from ...actors.operators.source import SourceState
from ...state import ValueState
from ..api.environment import StreamEnvironment
from ..api.restart import fixed_delay
from ..connectors import FileSink, GeneratorSource

KEYS = 840
"""Divided by every parallelism up to 8."""

PADDING = "x" * 150
"""Makes records large enough for links to have something to carry."""

FORMAT = "jsonl"
NEVER = 1_000_000
"""A bound that no run reaches, where a setting wants one."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One record of the output."""

    key: int
    number: int
    index: int


def counted(index: int) -> Counted:
    """What becomes of record `index`."""
    return Counted(index % KEYS, index // KEYS + 1, index)


def expected(count: int) -> list[Counted]:
    """What must be committed in the end, when `count` records were emitted."""
    return [counted(index) for index in range(count)]


def read_file(path: Path) -> list[Counted]:
    """The records of one committed file; raises ValueError if it is not whole."""
    text = path.read_text()
    if not text.endswith("\n"):
        raise ValueError(f"{path.name} is cut off after {len(text)} characters")
    return [Counted(**json.loads(line)) for line in text.splitlines()]


class EndFile:
    """By which a source without end learns, during the run, how many records it is to emit."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, count: int) -> None:
        """Tell it, once. `count` must be more than was covered by any checkpoint so far."""
        draft = self._path.with_suffix(".draft")
        draft.write_text(str(count))
        draft.rename(self._path)

    def read(self) -> int | None:
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return None


class RecordsUntilTold(GeneratorSource):
    """Padded records until the end file says how many. One that has gone too far fails: its job takes it back."""

    def __init__(self, end: EndFile, records_per_second: float) -> None:
        super().__init__(padded, None, records_per_second)
        self.end = end

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        if self.count is None and (count := self.end.read()) is not None:
            if self._share.reached >= count:
                raise ValueError(f"ordered to end at {count}, but has reached {self._share.reached} already")
            self.count = count
        return super().read(max_records)


class NumberWithinKey(KeyedOperator):
    """Numbers the records of each key, from 1. Its state is large enough to be written to files, not sent along."""

    seen = ValueState(int, default=0)
    last_padding = ValueState(str, default="")

    def process(self, record: dict[str, Any], out: Collector) -> None:
        number = self.seen.value() + 1
        self.seen.update(number)
        self.last_padding.update(record["padding"])
        out.collect({"key": self.key, "number": number, "index": record["index"]})


def padded(index: int) -> dict[str, Any]:
    return {"index": index, "padding": PADDING}


def key_of(record: dict[str, Any]) -> int:
    return int(record["index"]) % KEYS


def build(
    output: Path, checkpoints: Path, end: EndFile, *, records_per_second: float, checkpoint_interval_ms: int
) -> StreamEnvironment:
    """The job. It goes on whatever fails, and however often."""
    env = StreamEnvironment(
        checkpoint_interval_ms=checkpoint_interval_ms,
        checkpoint_dir=str(checkpoints),
        checkpoint_timeout_ms=10_000,
        tolerable_checkpoint_failures=NEVER,
        restart_strategy=fixed_delay(attempts=NEVER, delay_ms=10),
    )
    source = RecordsUntilTold(end, records_per_second)
    numbered = env.from_source(source, name="records").key_by(key_of).process(NumberWithinKey, name="number")
    numbered.sink_to(FileSink(str(output), FORMAT), name="numbered")
    return env
