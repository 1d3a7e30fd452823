"""A side output that nothing can fill, or that is misspelt, is noticed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from understudy import InvalidProgram, KeyedOperator, OutputTag, StreamEnvironment, monotonous
from understudy.testing import SimulatedCluster


class Sorting(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        if record > 1:
            out.collect_to(OutputTag("large"), record)
        out.collect(record)


def test_what_sends_nothing_to_side_outputs_has_none() -> None:
    stream = StreamEnvironment().from_collection([{"at": 1}])
    for each in (
        stream,
        stream.map(dict),
        stream.assign_timestamps("at", monotonous()),
        stream.key_by("at").reduce(max),
    ):
        with pytest.raises(InvalidProgram, match="sends nothing to side outputs, so 'large' would stay empty"):
            each.side_output(OutputTag("large"))


@pytest.mark.parametrize(("name", "is_said"), [("lagre", True), ("large", False)])
def test_a_misspelt_one_is_logged_at_the_end(name: str, is_said: bool, caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment(parallelism=1)
    sorting = env.from_collection([1, 2]).key_by(abs).process(Sorting(), name="sorting")
    sorting.side_output(OutputTag(name)).collect(name="large")
    sorting.collect(name="all")
    with caplog.at_level(logging.WARNING), SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("large") == ([] if is_said else [2])
    said = "nothing has come to the side output 'lagre' of operator 'sorting', which is read; what went to 'large'"
    assert (said in caplog.text) == is_said
