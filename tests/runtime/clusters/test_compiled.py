"""A compiled operator on real processes: exact whatever is killed, and its savepoints are the interpreted one's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.actors.ask_errors import AskFailed
from understudy.actors.operators.collector import Collector

from .jobs import WAIT_S, Gate, Witness, environment, eventually, generated
from .test_savepoints_local import assert_exact, canceled, savepoint_of

pytest.importorskip("numba")

KEYS = 24
COUNT, RATE = 6000, 3000.0
StartCluster = Callable[..., LocalCluster]


class Numbering(KeyedOperator):
    """Numbers the records of each key, from 1."""

    seen = ValueState(tuple, default=(0, 0.0))

    def process(self, record: Any, out: Collector) -> None:
        number, total = self.seen.value()
        number += 1
        self.seen.update((number, total + record.index))
        out.collect((self.key, number, record.index))

    def on_receive(self, message: Any) -> Any:
        if message == "change":
            self.seen.update((0, 0.0))
        return self.seen.value()


class CompiledNumbering(Numbering):
    compiled = True


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.record_batch({"key": pa.array([each % KEYS for each in numbers]), "index": pa.array(numbers)})


def numbering(
    env: StreamEnvironment,
    count: int | None,
    rate: float | None,
    operator: type[Numbering] = CompiledNumbering,
    gate: Gate | None = None,
) -> StreamEnvironment:
    source = generated(env, count, rate, gate, "rows", function=rows)
    source.key_by("key").process(operator, name="count").collect(name="out")
    return env


def counts(records: Iterable[Any]) -> Counter[tuple[int, int, int]]:
    return Counter(map(tuple, records))


@pytest.mark.chaos
def test_output_is_exact_when_a_task_manager_is_killed_and_checkpoints_have_bytes(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    job = shared_cluster.submit(numbering(environment(batch_rows=64), COUNT, RATE, gate=gate))
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert_exact(counts(job.results("out")), COUNT)
    last = job.checkpoint_history().checkpoints[0]
    assert last.state_size_bytes > 2 * KEYS


def test_savepoints_go_from_the_interpreted_operator_to_the_compiled_one_and_back_with_other_parallelisms(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """2 -> 3 -> 2 subtasks."""
    cluster = start_cluster(3, config={"savepoints.state.backend.fs.dir": str(tmp_path / "savepoints")})

    def env(parallelism: int) -> StreamEnvironment:
        return environment(parallelism=parallelism, checkpoint_dir=str(tmp_path / "checkpoints"), batch_rows=16)

    path, before = None, []
    for parallelism, operator in [(2, Numbering), (3, CompiledNumbering)]:
        job = cluster.submit(numbering(env(parallelism), None, 300.0, operator), from_savepoint=path)
        path = savepoint_of(job)
        canceled(job)
        before.append(job.results("out"))
    last = cluster.submit(numbering(env(2), 4000, None, Numbering), from_savepoint=path)
    last.wait(timeout=WAIT_S)
    assert_goes_on(before, last.results("out"), 4000)


def assert_goes_on(before: list[list[Any]], last: list[Any], count: int) -> None:
    """Each part begins where its savepoint was: what an earlier one emitted after it comes again in a later one."""
    exact = counts(last)
    for part in reversed(before):
        again = {index for _, _, index in exact}
        exact += counts(row for row in part if row[2] not in again)
    assert_exact(exact, count)


def test_a_question_reads_compiled_state_by_key_and_cannot_change_it(shared_cluster: LocalCluster) -> None:
    env = numbering(environment(batch_rows=64), None, RATE)
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(1)

    def seen(key: Any) -> Any:
        return job.ask("count", message="seen", key=key).result(timeout=WAIT_S)

    eventually(lambda: seen(5)[0] > 1, "records of key 5")
    number, total = seen(5)
    assert (type(number), type(total)) == (int, float)
    assert total % KEYS == 5 * number % KEYS
    assert seen("no such key") == (0, 0.0)
    with pytest.raises(AskFailed, match="ReadOnlyState: state 'seen' is read-only"):
        job.ask("count", message="change", key=5).result(timeout=WAIT_S)
    canceled(job)
