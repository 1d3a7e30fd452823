"""Records of a count window that never became full when the data ended: the log says that no result has them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    Collector,
    KeyedStream,
    StreamEnvironment,
    WindowedStream,
    any_of,
    count,
    count_window,
    global_window,
    processing_time,
    purging,
    tumbling,
)
from understudy.testing import SimulatedCluster


def sizes(key: Any, window: Any, records: list[Any], out: Collector) -> None:
    out.collect((key, len(records)))


def run(
    caplog: pytest.LogCaptureFixture, numbers: int, windows: Callable[[KeyedStream], WindowedStream[Any]]
) -> tuple[list[Any], list[str]]:
    env = StreamEnvironment(parallelism=1)
    windows(env.from_collection(range(numbers)).key_by(lambda number: number % 2)).process(sizes).collect(name="sizes")
    with caplog.at_level(logging.WARNING), SimulatedCluster(1, seed=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=60)
        return sorted(job.results("sizes")), [each for each in caplog.messages if "the data ended while" in each]


@pytest.mark.parametrize(
    "windows",
    [
        lambda keyed: keyed.window(count_window(2)),
        lambda keyed: keyed.window(global_window()).trigger(count(2)).discarding(),
    ],
)
def test_a_tail_is_said(caplog: pytest.LogCaptureFixture, windows: Callable[[KeyedStream], Any]) -> None:
    found, said = run(caplog, 6, windows)
    assert found == [(0, 2), (1, 2)]
    (text,) = said
    assert "windows of 2 keys held records for which their trigger had not fired yet" in text


def test_full_windows_leave_none(caplog: pytest.LogCaptureFixture) -> None:
    assert run(caplog, 8, lambda keyed: keyed.window(count_window(2))) == ([(0, 2), (0, 2), (1, 2), (1, 2)], [])


def test_what_the_text_advises_gives_them(caplog: pytest.LogCaptureFixture) -> None:
    found, said = run(
        caplog,
        6,
        lambda keyed: keyed.window(tumbling(days=1, time="processing")).trigger(
            purging(any_of(count(2), processing_time()))
        ),
    )
    assert (found, said) == ([(0, 1), (0, 2), (1, 1), (1, 2)], [])
