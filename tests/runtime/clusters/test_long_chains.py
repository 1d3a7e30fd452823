"""A program of very many operators in a row."""

from __future__ import annotations

from understudy import LocalCluster, StreamEnvironment


def test_a_row_of_operators_is_longer_than_pythons_stack_is_deep() -> None:
    env = StreamEnvironment(checkpoint_interval_ms=50)
    stream = env.from_collection([1, 2, 3])
    for _ in range(600):
        stream = stream.map(lambda number: number + 1)
    stream.collect(name="sums")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        assert job.wait(timeout=60).restarts == 0
        assert job.results("sums") == [601, 602, 603]
