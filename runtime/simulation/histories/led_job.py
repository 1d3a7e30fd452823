"""The job of led histories: numbers, counted by key, in files that anybody may read meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....state import ValueState
from ...api.environment import StreamEnvironment
from ...connectors.files.file_sink import FileSink
from ...connectors.files.folder_owner import FOLDER as CLAIMS
from ..world.disk import SimulatedDisk

RECORDS, KEYS, RATE = 24, 4, 5.0
DURATION_MS = RECORDS / RATE * 1000
FOLDER = "sim://service"


class Counting(KeyedOperator):
    """The count of its key so far, with each record."""

    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect({"key": self.key, "number": self.seen.value(), "index": record})


EXPECTED = sorted((index % KEYS, index // KEYS + 1, index) for index in range(RECORDS))


@dataclass(frozen=True, slots=True)
class LedJob:
    """How it is set up."""

    parallelism: int
    checkpoint_interval_ms: int
    retained: int

    def environment(self) -> StreamEnvironment:
        env = StreamEnvironment(
            parallelism=self.parallelism,
            max_parallelism=16,
            checkpoint_interval_ms=self.checkpoint_interval_ms,
            checkpoint_dir=f"{FOLDER}/checkpoints",
            retained_checkpoints=self.retained,
        )
        numbers = env.generate(lambda index: index, RECORDS, records_per_second=RATE, name="numbers")
        counts = numbers.key_by(lambda index: index % KEYS).process(Counting, name="count")
        counts.sink_to(FileSink(f"{FOLDER}/out", "jsonl"), name="out")
        return env


def left_in_progress(disk: SimulatedDisk) -> list[str]:
    """Hidden files that an attempt has begun, and that are neither visible nor removed."""
    return [path for path, _ in disk.files() if "/out/.understudy-" in path and f"/{CLAIMS}/" not in path]


def published(disk: SimulatedDisk) -> list[tuple[int, ...]]:
    """What a reader of the output folder sees."""
    files = disk.contents(f"{FOLDER}/out".removeprefix("sim:/"))
    visible = [content for name, content in files.items() if not name.startswith(".")]
    return sorted(tuple(json.loads(line).values()) for content in visible for line in content.splitlines())
