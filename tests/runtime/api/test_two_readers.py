"""Two readers of one stream: what the one does to its records, the other does not see, wherever they run."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import LocalCluster, StreamEnvironment


def spoilt(record: dict[str, Any]) -> dict[str, Any]:
    record["n"] = -1
    record["deep"].append(1)
    return record


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
@pytest.mark.parametrize("debug", [True, False])
def test_each_has_its_own_records(debug: bool) -> None:
    env = StreamEnvironment()
    stream = env.from_collection([0, 1, 2]).map(lambda n: {"n": n, "deep": []})
    stream.map(spoilt, name="spoils").collect(name="spoilt")
    stream.map(lambda record: (record["n"], len(record["deep"])), name="reads").collect(name="read")
    with LocalCluster(task_managers=1, debug=debug) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("read") == [(0, 0), (1, 0), (2, 0)]
        assert [each["n"] for each in job.results("spoilt")] == [-1] * 3
