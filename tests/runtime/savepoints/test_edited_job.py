"""A job of real processes that starts from an edited savepoint of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import KeyedOperator, LocalCluster, Savepoint, StreamEnvironment, ValueState


class Counted(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, number: int, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((number, self.seen.value()))


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
def test_a_job_that_starts_from_an_edited_savepoint_goes_on_exactly(tmp_path: Path) -> None:
    """The offsets of sources and the transactions of sinks are part of what is copied."""

    def counting(count: int | None) -> StreamEnvironment:
        env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=50)
        numbers = env.generate(lambda index: index, count, records_per_second=2000 if count is None else None, name="n")
        counted = numbers.key_by(lambda number: number % 4).process(Counted, name="counted")
        counted.collect(name="out")
        return env

    with LocalCluster(1) as cluster:
        first = cluster.submit(counting(None), "first")
        first.ready().result(timeout=60)
        path = first.stop_with_savepoint().result(timeout=60)
        first.wait(timeout=60)
        before = first.results("out")
        edit = Savepoint.open(path).edit()
        edit.operator("counted").state("seen").update(lambda key, value: value + 1_000_000)
        second = cluster.submit(counting(len(before) + 100), "second", from_savepoint=edit.write())
        second.wait(timeout=60)
        after = second.results("out")
    assert sorted(number for number, _ in before) == list(range(len(before)))
    assert sorted(number for number, _ in after) == list(range(len(before), len(before) + 100))
    last = {number % 4: seen for number, seen in before}
    for number, seen in after:
        assert seen == last[number % 4] + (1_000_000 if last[number % 4] < 1_000_000 else 0) + 1
        last[number % 4] = seen
