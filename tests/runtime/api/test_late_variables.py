"""A lambda of a loop reads the variable as it is at submit: whoever submits it is warned."""

from __future__ import annotations

import pytest

from understudy import Collector, KeyedOperator, LocalCluster, StreamEnvironment

least = 0


def at_submit(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> list[str]:
    with LocalCluster(debug=True) as cluster:
        cluster.submit(env).wait()
    return [said for said in caplog.messages if "then" in said]


def test_lambdas_of_a_loop_that_read_its_variable_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    numbers = env.from_collection(range(30))
    limit = 5
    numbers.filter(lambda number: number > limit, name="over 5").collect(name="numbers over 5")
    limit = 10
    numbers.filter(lambda number: number > limit, name="over 10").collect(name="numbers over 10")
    (said,) = at_submit(env, caplog)
    assert said.startswith("operator 'over 5': its lambda (")
    assert "reads 'limit', which was 5 when the stream was built, and is 10 now" in said
    assert "write `limit=limit` among its parameters" in said


def test_a_variable_of_the_program_that_was_assigned_since_then_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Over(KeyedOperator):
        def process(self, number: int, out: Collector) -> None:
            if number > least:
                out.collect(number)

    env = StreamEnvironment()
    env.from_collection(range(5)).key_by(lambda number: number).process(Over, name="over").collect(name="numbers")
    monkeypatch.setitem(globals(), "least", 3)
    (said,) = at_submit(env, caplog)
    assert said.startswith("operator 'over': process (")
    assert "reads 'least', which was 0 when the stream was built, and is 3 now" in said


def test_a_key_of_a_variable_that_was_assigned_since_then_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    class All(KeyedOperator):
        def process(self, record: dict[str, int], out: Collector) -> None:
            out.collect(self.key)

    env = StreamEnvironment()
    column = "a"
    env.from_collection([{"a": 1, "b": 2}]).key_by(lambda record: record[column]).process(All, name="all").collect(
        name="keys"
    )
    column = "b"
    (said,) = at_submit(env, caplog)
    assert said.startswith("operator 'all': its lambda (")
    assert "reads 'column', which was 'a' when the stream was built, and is 'b' now" in said


def test_variables_that_are_what_they_were_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    numbers, steps = env.from_collection(range(30)), [1]
    for limit in (5, 10):
        kept = numbers.filter(lambda number, limit=limit: number > limit)
        kept.map(lambda number: number + steps[0]).collect(name=f"over {limit}")
    assert at_submit(env, caplog) == []


def test_nan_and_true_are_the_values_that_they_were(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    none, one = float("nan"), True
    env.from_collection([1.0]).map(lambda number: (number, none, one)).map(str).collect(name="out")
    assert at_submit(env, caplog) == []
