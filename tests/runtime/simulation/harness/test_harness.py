"""OperatorHarness, as a user's tests use it. Flink: the OperatorTestHarness family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, KeyedOperator, Operator, StreamEnvironment, Sum, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.operators.aggregate import ColumnarAggregate
from understudy.actors.operators.filter import Filter
from understudy.actors.operators.flat_map import FlatMap
from understudy.actors.operators.map import Map
from understudy.actors.operators.source import END
from understudy.messages import UnregisteredMessage, UnsupportedValue
from understudy.runtime.api.errors import InvalidOperator, NotPicklable
from understudy.runtime.connectors.collection_source import CollectionSource
from understudy.runtime.simulation.harness.harness import HarnessMisused, OperatorHarness
from understudy.runtime.simulation.harness.survival import assert_survives_restore
from understudy.state import ReadOnlyState

from .harness_operators import Buffering, Countdown, Forgetful, Join, Lifecycle, RunningTotal, TotalSoFar


class TestElements:
    def test_a_map(self) -> None:
        with OperatorHarness(Map(lambda number: number * 2)) as harness:
            harness.process([1, 2])
            harness.process([3])
            assert harness.output() == [2, 4, 6]
            assert harness.take_output() == [2, 4, 6]
            assert harness.output() == []

    def test_a_chain_runs_as_one(self) -> None:
        with OperatorHarness([FlatMap(range), Filter(lambda number: number % 2)]) as harness:
            harness.process([4, 6])
            assert harness.output() == [1, 3, 1, 3, 5]
            assert harness.take_batches() == [[1, 3, 1, 3, 5]]
            assert repr(harness) == "<harness of flat-map-1 -> filter-1, subtask 0 of 1, attempt 0: running>"

    def test_the_operator_is_a_copy(self) -> None:
        mine = Forgetful()
        with OperatorHarness(mine, key_by=0) as harness:
            harness.process([("a", 1)])
            assert harness.operator.totals == {"a": 1}
        assert mine.totals == {}

    def test_two_inputs_have_their_own_keys(self) -> None:
        with OperatorHarness(Join, key_by=0, key_by_2="name") as harness:
            harness.process([("ann", 1)])
            harness.process([{"name": "ann", "says": "hello"}], input_index=1)
            harness.process([("ann", 2), ("bob", 3)])
            assert harness.output() == [("ann", 1, "nothing"), ("ann", 2, "hello"), ("bob", 3, "nothing")]

    def test_columns_go_in_and_rows_come_out(self) -> None:
        batch = pa.RecordBatch.from_pydict({"airport": ["JFK", "LGA", "JFK"], "miles": [10, 20, 30]})
        with OperatorHarness(ColumnarAggregate(["airport"], {"miles": Sum("miles")}, "end")) as harness:
            harness.process(batch)
            assert harness.output() == []
            harness.end()
            assert sorted(harness.output()) == [("JFK", 40), ("LGA", 20)]

    def test_a_stream_brings_its_operator_and_keys(self) -> None:
        stream = (
            StreamEnvironment()
            .from_collection([("a", 1)])
            .key_by("_1")
            .reduce(lambda one, two: (one[0], one[1] + two[1]))
        )
        with OperatorHarness(stream) as harness:
            harness.process([("a", 1), ("b", 5), ("a", 2)])
            assert harness.output() == [("a", 1), ("b", 5), ("a", 3)]

    def test_time_stands_still_until_it_is_moved(self) -> None:
        class Stamp(Operator):
            def process_batch(self, batch: list[Any], out: Collector) -> None:
                out.collect((self.context.clock.now_ms(), self.context.clock.wall_ms()))

        with OperatorHarness(Stamp) as harness:
            harness.process([1])
            harness.advance(1500)
            harness.process([1])
            (now, wall), (later, wall_later) = harness.output()
            assert (later - now, wall_later - wall) == (1500, 1500)
            with harness.restored(harness.snapshot()) as after:
                assert after.clock.now_ms() == later


class TestSources:
    def test_a_source_is_polled_and_sought(self) -> None:
        with OperatorHarness([Countdown(5), Map(str)]) as harness:
            assert harness.poll() == [5, 4]
            assert harness.poll() is None
            snapshot = harness.snapshot()
            harness.advance(1000)
            assert harness.poll() == [3, 2]
            harness.crash()
        with harness.restored(snapshot) as after:
            assert after.offset() == 3
            assert after.drain()
            assert after.output() == ["3", "2", "1"]
            assert after.poll() is END

    def test_drain_lets_time_pass(self) -> None:
        with OperatorHarness(Countdown(5)) as harness:
            assert harness.drain()
            assert harness.clock.now_ms() == 2000

    def test_a_snapshot_after_the_end_emits_nothing_twice(self) -> None:
        with OperatorHarness([CollectionSource([1, 2, 3]), Buffering()]) as harness:
            assert harness.drain()
            assert harness.output() == [(1, 2), (3, None)]
            with harness.restored(harness.snapshot()) as after:
                assert after.drain()
                assert after.output() == []


class TestFailures:
    def test_what_happens_to_an_operator_and_when(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        with OperatorHarness(Lifecycle(log)) as harness:
            harness.process(["x"])
            first = harness.snapshot()
            harness.complete(first)
            harness.abort(harness.snapshot(7))
            harness.crash()
        with harness.restored(first) as after:
            assert after.snapshot().checkpoint_id == 8
            after.end()
        assert log.read_text().splitlines() == [
            "open 0 False",
            "process ['x']",
            "checkpoint 1",
            "complete 1",
            "checkpoint 7",
            "aborted 7",
            "open 1 True",
            "checkpoint 8",
            "end",
            "close",
        ]

    def test_what_user_code_raises_ends_the_attempt(self, tmp_path: Path) -> None:
        harness = OperatorHarness(Lifecycle(tmp_path / "log"))
        snapshot = harness.snapshot()
        with pytest.raises(UserCodeError, match="operator 'lifecycle-1' raised") as raised:
            harness.process(["poison"])
        assert isinstance(raised.value.__cause__, ValueError)
        assert (tmp_path / "log").read_text().splitlines()[-1] == "close"
        with pytest.raises(HarnessMisused, match=r"this attempt is over \(failed\): go on with"):
            harness.process(["x"])
        harness.close()
        with harness.restored(snapshot) as after:
            after.process(["x"])

    def test_the_number_of_the_record_is_told(self) -> None:
        with OperatorHarness(Map(lambda number: 1 // number)) as harness:
            harness.process([1, 2])
            with pytest.raises(UserCodeError, match="at record 3 of this attempt"):
                harness.process([1, 0])

    def test_what_close_raises_is_told_unless_the_test_has_failed_before(self) -> None:
        class Stuck(Operator):
            def process_batch(self, batch: list[Any], out: Collector) -> None:
                pass

            def close(self) -> None:
                raise OSError("stuck")

        with pytest.raises(UserCodeError, match="stuck-1"), OperatorHarness(Stuck):
            pass
        with pytest.raises(KeyError), OperatorHarness(Stuck):
            raise KeyError

    def test_unstorable_state_is_told_and_the_attempt_goes_on(self) -> None:
        class Odd(KeyedOperator):
            held = ValueState(object)

            def process(self, record: Any, out: Collector) -> None:
                self.held.update(object() if record else 1)

        with OperatorHarness(Odd, key_by=lambda _: 0) as harness:
            harness.process([1])
            with pytest.raises(Exception, match="held"):
                harness.snapshot()
            harness.process([0])
            assert harness.snapshot().checkpoint_id == 2


class TestQuestions:
    def test_an_operator_is_asked(self) -> None:
        with OperatorHarness(RunningTotal, key_by=0) as harness:
            harness.process([("a", 1), ("b", 2), ("a", 3)])
            assert harness.ask(TotalSoFar(), key="a") == 4
            assert harness.ask(TotalSoFar(), key="b", operator="running-total-1") == 2

    def test_a_question_changes_nothing(self) -> None:
        with OperatorHarness(RunningTotal, key_by=0) as harness:
            harness.process([("a", 1)])
            with pytest.raises(ReadOnlyState):
                harness.ask("cheat", key="a")
            assert harness.ask(TotalSoFar(), key="a") == 1

    def test_question_and_answer_must_be_sendable(self) -> None:
        with OperatorHarness(RunningTotal, key_by=0) as harness:
            with pytest.raises(UnsupportedValue):
                harness.ask("unsendable", key="a")
            with pytest.raises((UnsupportedValue, UnregisteredMessage)):
                harness.ask(object(), key="a")


class TestMisuse:
    def test_one_time_for_all_records_is_refused_as_such(self) -> None:
        said = "timestamps: wanted a list with one for each record, found 0"
        with OperatorHarness(RunningTotal, key_by=0) as harness, pytest.raises(HarnessMisused, match=said):
            harness.process([("a", 1)], timestamps=0)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda: OperatorHarness(RunningTotal), HarnessMisused, "say how a record's key is found"),
            (lambda: OperatorHarness(lambda record: record), InvalidOperator, "use map, flat_map or filter"),  # type: ignore[arg-type]
            (lambda: OperatorHarness([]), HarnessMisused, "an empty list"),
            (lambda: OperatorHarness([Map(str), Countdown(1)]), InvalidOperator, "is a source and takes no input"),
            (lambda: OperatorHarness([Map(str), Join], key_by=0), InvalidOperator, "takes two inputs"),
            (lambda: OperatorHarness(Join, key_by_2=0), HarnessMisused, "the first has none"),
            (lambda: OperatorHarness(Map(str), subtask_index=1), HarnessMisused, "wanted 0 <= subtask_index < para"),
            (lambda: OperatorHarness(Map((n for n in ()).__next__)), NotPicklable, "generator"),
            (lambda: assert_survives_restore(Map(str), [1]), HarnessMisused, r"batches\[0\]: wanted a batch"),
        ],
    )
    def test_what_cannot_be_hosted(self, make: Callable[[], Any], error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            make()

    @pytest.mark.parametrize(
        ("act", "text"),
        [
            (lambda harness: harness.process("abc"), "wanted a list of records"),
            (lambda harness: harness.process(("a", 1)), "wanted a list of records"),
            (lambda harness: harness.process([1], input_index=1), r"input_index: wanted one of \[0\], found 1"),
            (lambda harness: harness.poll(), "map-1 is no source"),
            (lambda harness: harness.complete(1), "no barrier of checkpoint 1 has come"),
            (lambda harness: harness.snapshot(0), "wanted one above 0"),
            (lambda harness: harness.advance(-1), "time does not go back"),
            (lambda harness: harness.ask("?", operator="mop"), "no operator 'mop'; there are"),
            (lambda harness: harness.restored([]), "found none"),
            (lambda harness: (harness.end(), harness.process([1])), "the data has ended here"),
            (lambda harness: (harness.crash(), harness.process([1])), "this attempt is over .crashed."),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, act: Callable[[OperatorHarness], Any], text: str) -> None:
        with OperatorHarness(Map(str)) as harness, pytest.raises(HarnessMisused, match=text):
            act(harness)

    def test_a_key_of_another_subtask_is_refused(self) -> None:
        records = [(f"key {number}", 1) for number in range(20)]
        with OperatorHarness(RunningTotal, key_by=0, parallelism=2) as harness:
            with pytest.raises(
                HarnessMisused, match="belongs to another subtask by its key, and this is subtask 0 of 2"
            ):
                harness.process(records)
            harness.process(harness.share_of(records))

    def test_snapshots_that_do_not_belong_together_are_refused(self) -> None:
        with OperatorHarness(Buffering, parallelism=2) as first:
            one, two = first.snapshot(), first.snapshot()
            with pytest.raises(HarnessMisused, match=r"their checkpoint_ids are \[1, 2\]"):
                first.restored([one, two])
            with pytest.raises(HarnessMisused, match=r"each of the subtasks \[0, 1\], found those of \[0\]"):
                first.restored(one)


def test_a_side_output_is_named_by_its_tag() -> None:
    with (
        OperatorHarness(RunningTotal, key_by=0) as harness,
        pytest.raises(
            HarnessMisused, match=r"side_output: wanted an OutputTag, such as OutputTag\('late'\), found 'late'"
        ),
    ):
        harness.side_output("late")  # type: ignore[arg-type]


def test_what_an_operator_raises_is_in_the_text_of_the_harness_error() -> None:
    """pytest shows the last error, behind a hundred lines of ours, and in its summary that alone."""
    with OperatorHarness(Map(lambda number: 1 // number)) as harness:
        with pytest.raises(UserCodeError) as raised:
            harness.process([1, 0])
        assert str(raised.value).endswith(
            "raised at record 1 of this attempt: ZeroDivisionError: integer division or modulo by zero"
        )
