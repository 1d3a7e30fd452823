"""A test that passes says what it doubts, though nobody prints it; and who fails is told where to look."""

from __future__ import annotations

import datetime
import traceback
import warnings
from pathlib import Path

import pytest

from understudy import KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.testing import assert_exactly_once


class Writing(Operator):
    """Keeps a list of its own on the disk."""

    def process_batch(self, batch, out):
        with open(Path("/dev/null"), "a") as file:
            file.write(f"{batch}\n")
        out.emit(batch)


class PerBatch(Operator):
    def process_batch(self, batch, out):
        out.collect(len(batch))


class Dated(Operator):
    def process_batch(self, batch, out):
        for number in batch:
            out.collect((number, datetime.date.today().isoformat()))


class Pages(KeyedOperator):
    """Of this set, list(set(list(pages))) has another order than list(pages), in each process."""

    pages = ValueState(set)

    def process(self, number, out):
        pages = (self.pages.value() or set()) | {(45, 5, 41, 44)[number // 2 % 4]}
        self.pages.update(pages)
        out.collect((number, str(list(pages))))


def job(operator):
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(40)).key_by(lambda number: number % 2).process(operator).collect(name="out")
    return env


def test_what_is_doubtful_is_warned_of_at_the_line_of_the_test():
    with pytest.warns(RuntimeWarning, match=r"survived.*but doubtful: process_batch calls open") as warned:
        assert_exactly_once(lambda: job(Writing), histories=2)
    assert [each.filename for each in warned] == [__file__]


def test_that_output_depends_on_where_batches_end_is_warned_of():
    with pytest.warns(RuntimeWarning, match=r"depends on where batches end.*\n.*\n.*of the records alone"):
        assert_exactly_once(lambda: job(PerBatch), histories=2)


def test_of_a_good_job_nothing_is_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_exactly_once(numbers, histories=2)


def numbers():
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(20)).collect(name="out")
    return env


def test_what_another_time_zone_changes_is_found_after_few_histories_and_named():
    with pytest.raises(AssertionError, match="time-zone: ") as raised:
        assert_exactly_once(lambda: job(Dated), histories=500)
    assert "Likely cause: process_batch calls date.today (" in str(raised.value)


def test_a_set_in_state_is_named_where_nothing_else_is_found():
    with pytest.raises(AssertionError) as raised:
        assert_exactly_once(lambda: job(Pages), histories=20)
    assert "state 'pages' of Pages holds sets" in str(raised.value)


def test_the_report_comes_without_the_lines_that_made_it():
    with pytest.raises(AssertionError) as raised:
        assert_exactly_once(lambda: job(Dated), histories=1)
    of_ours = [
        frame.f_code.co_name
        for frame, _ in traceback.walk_tb(raised.value.__traceback__)
        if "understudy" in frame.f_globals["__name__"].split(".")[0] and not frame.f_locals.get("__tracebackhide__")
    ]
    assert of_ours == []
