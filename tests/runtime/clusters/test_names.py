"""Names of jobs, operators and states, of any length and script: they become parts of the names of files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from understudy import Collector, FileSink, KeyedOperator, LocalCluster, StreamEnvironment, ValueState

NAMES = [
    pytest.param("n" * 1_000, id="long"),
    pytest.param("語" * 200, id="long and not ASCII"),
    pytest.param("a/../b\\c", id="a path"),
    pytest.param("line\nbreak\x00", id="control characters"),
    pytest.param("half of a pair \udcff", id="a file name that is no text"),
]


class Count(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((self.key, self.seen.value()))


@pytest.mark.parametrize("name", NAMES)
def test_a_job_runs_whatever_it_and_its_operators_are_called(name: str, tmp_path: Path) -> None:
    env = StreamEnvironment(
        checkpoint_interval_ms=50, checkpoint_dir=str(tmp_path / "checkpoints"), incremental_checkpoints=True
    )
    numbers = env.generate(lambda index: index, 100, records_per_second=500, name=f"source {name}")
    counts = numbers.key_by(lambda number: number % 5).process(Count, name=f"count {name}")
    counts.sink_to(FileSink(str(tmp_path / "out"), format="jsonl"), name=f"sink {name}")
    counts.to_outlet(f"outlet {name}")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env, name, resume="latest")
        details = job.wait(timeout=60)
        followed = [record for batch in job.outlet(f"outlet {name}") for record in batch]
    lines = [line for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    wanted = sorted((key, count) for key in range(5) for count in range(1, 21))
    assert sorted(tuple(json.loads(line).values()) for line in lines) == wanted
    assert sorted(map(tuple, followed)) == wanted
    assert details.restarts == 0
    assert details.completed_checkpoints > 0


def test_a_job_that_is_resumed_without_a_name_of_its_own_is_told_of(tmp_path: Path) -> None:
    def submitted(name: str) -> None:
        env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=str(tmp_path / name))
        env.from_collection([1]).collect(name="out")
        with LocalCluster(debug=True) as cluster:
            cluster.submit(env, name, resume="latest").wait(timeout=60)

    with pytest.warns(UserWarning, match="'job' is that of every job without one: .* submit\\(env, name=") as caught:
        submitted("job")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        submitted("orders")
