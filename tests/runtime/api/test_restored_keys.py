"""Keys of another type than those of a savepoint begin anew: the job says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from understudy import JobStatus, KeyedOperator, LocalCluster, StreamEnvironment, ValueState
from understudy.actors.operators.restored_keys import compare, kinds_of


class Counted(KeyedOperator):
    count = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((record["n"], self.count.value()))


class Awaited(KeyedOperator):
    count = ValueState(int, default=0)

    async def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((record["n"], self.count.value()))


def warnings_of(
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    operator: type[KeyedOperator],
    keys: list[Callable[[Any], Any]],
    backend: str = "memory",
) -> list[str]:
    """Of a job, and of one that goes on from its savepoint, which makes keys in another way."""
    savepoint = None
    for key in keys:
        caplog.clear()
        env = StreamEnvironment(checkpoint_dir=str(folder), checkpoint_interval_ms=50, state_backend=backend)
        numbers = env.generate(lambda n: {"n": n}, records_per_second=1000)
        numbers.key_by(key).process(operator, name="counted").collect()
        with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env, from_savepoint=savepoint)
            job.ready().result(timeout=5)
            while job.status == JobStatus.RUNNING and job.details().completed_checkpoints < 3:
                time.sleep(0.02)
            savepoint = job.stop_with_savepoint().result(timeout=5)
            job.wait()
    return [text for each in caplog.records if "restored state" in (text := each.getMessage())]


def number(record: Any) -> Any:
    return record["n"] % 5


def text(record: Any) -> Any:
    return str(record["n"] % 5)


def pair(record: Any) -> Any:
    return (record["n"] % 5, "x")


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize("operator", [Counted, Awaited])
def test_other_keys_are_warned_of_once(
    operator: type[KeyedOperator], backend: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (said,) = warnings_of(tmp_path, caplog, operator, [number, text], backend)
    assert said.startswith("operator 'counted': its restored state is of keys that are int, and the keys that come are")
    assert "are str: state is found under the same key only" in said
    assert "let key_by give keys that are int again, and restore the same savepoint once more" in said


def test_the_same_keys_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(tmp_path, caplog, Counted, [number, number]) == []


def test_a_part_of_another_type_is_another_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (said,) = warnings_of(tmp_path, caplog, Counted, [pair, number])
    assert "keys that are (int, str), and the keys that come are int:" in said


def test_numbers_that_may_be_equal_are_no_other_keys(caplog: pytest.LogCaptureFixture) -> None:
    compare("op", kinds_of([1, 2]), [1.0, 2.5])
    compare("op", kinds_of([(1, "a")]), [(Decimal(1), "a")])
    assert not caplog.records
    compare("op", kinds_of([1, 2]), ["1"])
    assert "keys that are int, and the keys that come are str" in caplog.text


def test_keys_of_several_types_are_one_side() -> None:
    assert kinds_of([1, None, ("a", (2, b""))]) == {"int", "None", "(str, (int, bytes))"}


class Asked(Counted):
    def on_receive(self, message: Any) -> int:
        return self.count.value()


@pytest.mark.parametrize(("key", "is_told"), [("3", True), (3, False), (3.0, False), (77, False), ((3, 3), True)])
def test_a_question_with_a_key_of_another_type_is_warned_of_once(
    key: Any, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As the text of a URL's path is: its answer is that of a key without state."""
    env = StreamEnvironment(parallelism=1)
    env.generate(lambda n: {"n": n}, records_per_second=1000).key_by(number).process(Asked, name="counted").print()
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        while job.ask("counted", key=3, message="?", timeout=30).result() == 0:
            time.sleep(0.02)
        for _ in range(2):
            job.ask("counted", key=key, message="?", timeout=30).result()
        job.cancel()
    said = [each for each in caplog.messages if "was asked with the key" in each]
    kind = "str" if key == "3" else "(int, int)"
    wanted = f"operator 'counted' was asked with the key {key!r}, of type {kind}, and the keys of its state are int: "
    assert [each[: len(wanted)] for each in said] == [wanted] * is_told
