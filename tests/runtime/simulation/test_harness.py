"""OperatorHarness and assert_survives_restore, as a user's tests use them. Flink: the OperatorTestHarness family."""

from __future__ import annotations

import pickle
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import (
    Collector,
    Count,
    FileSink,
    FoldingState,
    KeyedOperator,
    ListState,
    MapState,
    Operator,
    OperatorListState,
    ReducingState,
    Source,
    StreamEnvironment,
    Sum,
    ValueState,
    message,
)
from understudy.actors.errors import UserCodeError
from understudy.actors.operators.aggregate import ColumnarAggregate
from understudy.actors.operators.filter import Filter
from understudy.actors.operators.flat_map import FlatMap
from understudy.actors.operators.map import Map
from understudy.actors.operators.source import END
from understudy.messages import UnregisteredMessage, UnsupportedValue
from understudy.runtime.api.errors import InvalidOperator, NotPicklable
from understudy.runtime.connectors import CollectSink, read_collected
from understudy.runtime.connectors.collection_source import CollectionSource
from understudy.runtime.simulation.harness.harness import HarnessMisused, HarnessSnapshot, OperatorHarness
from understudy.runtime.simulation.harness.survival import assert_survives_restore
from understudy.state import ReadOnlyState, StateIncompatible

BACKENDS = ("memory", "filesystem")
LETTERS = [[("a", 1), ("b", 2)], [("a", 3)], [("b", 4), ("c", 5)]]


@message
class TotalSoFar:
    """How much has this key had?"""


class RunningTotal(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + record[1])
        out.collect((self.key, self.total.value()))

    def on_receive(self, message: Any) -> Any:
        match message:
            case TotalSoFar():
                return self.total.value()
            case "cheat":
                self.total.update(0)
            case "unsendable":
                return object()


class EveryKind(KeyedOperator):
    """All kinds of keyed state at once."""

    seen = ListState(int)
    named = MapState(str, int)
    most = ReducingState(int, max)
    text = FoldingState(str, "", lambda text, number: f"{text}{number}")

    def process(self, record: Any, out: Collector) -> None:
        key, number = record
        self.seen.add(number)
        self.named.put(f"n{number % 2}", number)
        self.most.add(number)
        self.text.add(number)
        out.collect((key, self.seen.get(), sorted(self.named.items()), self.most.get(), self.text.get()))


class Forgetful(KeyedOperator):
    """Keeps its totals where no snapshot finds them."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, record: Any, out: Collector) -> None:
        self.totals[self.key] = self.totals.get(self.key, 0) + record[1]
        out.collect((self.key, self.totals[self.key]))


class Buffering(Operator):
    """Pairs records up: what waits for its partner goes into state at the barrier."""

    waiting = OperatorListState(int)

    def open(self) -> None:
        self.left = self.waiting.get()

    def process_batch(self, batch: list[int], out: Collector) -> None:
        self.left += batch
        while len(self.left) >= 2:
            out.collect((self.left.pop(0), self.left.pop(0)))

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.waiting.update(self.left)

    def on_end(self, out: Collector) -> None:
        for number in self.left:
            out.collect((number, None))


class Join(KeyedOperator):
    """What the right side said last, for each record of the left side."""

    inputs = 2
    said = ValueState(str, default="nothing")

    def process(self, record: Any, out: Collector) -> None:
        out.collect((*record, self.said.value()))

    def process_2(self, record: Any, out: Collector) -> None:
        self.said.update(record["says"])


class Countdown(Source):
    """Numbers, two at a time, with a second between batches."""

    def __init__(self, start: int) -> None:
        self.left = start
        self.due_ms = 0.0

    def poll(self) -> Any:
        if not self.left:
            return END
        if self.context.clock.now_ms() < self.due_ms:
            return None
        self.due_ms = self.context.clock.now_ms() + 1000
        batch = list(range(self.left, max(self.left - 2, 0), -1))
        self.left -= len(batch)
        return batch

    def poll_delay_ms(self) -> float:
        return self.due_ms - self.context.clock.now_ms()

    def offset(self) -> int:
        return self.left

    def seek(self, offset: int) -> None:
        self.left = offset


class Lifecycle(Operator):
    """Writes down in a file what is done to it."""

    def __init__(self, log: Path) -> None:
        self.log = str(log)

    def note(self, *what: Any) -> None:
        with open(self.log, "a") as file:
            print(*what, file=file)

    def open(self) -> None:
        self.note("open", self.context.attempt_number, self.context.restored)

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.note("process", batch)
        if "poison" in batch:
            raise ValueError("poison")

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.note("checkpoint", checkpoint_id)

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.note("complete", checkpoint_id)

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.note("aborted", checkpoint_id)

    def on_end(self, out: Collector) -> None:
        self.note("end")

    def close(self) -> None:
        self.note("close")


def failure_of(operator: Any, batches: Any = LETTERS, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_survives_restore(operator, batches, **options)
    return str(caught.value)


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

    def test_sources_survive(self) -> None:
        assert_survives_restore(Countdown(7))
        assert_survives_restore(CollectionSource(range(10), batch_rows=3))
        assert_survives_restore(CollectionSource(range(10), batch_rows=3), max_polls=2)

    def test_a_source_with_a_wrong_offset_is_caught(self) -> None:
        class OffByOne(Countdown):
            def offset(self) -> int:
                return max(self.left - 1, 0)

        text = failure_of(OffByOne(7), None)
        assert (
            "OffByOne emits something else when it is restored from a snapshot taken before the first element" in text
        )
        assert "output record 1, made of poll 1" in text


@pytest.mark.parametrize("backend", BACKENDS)
class TestCheckpoints:
    def test_state_is_as_it_was_at_the_barrier(self, backend: str) -> None:
        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as harness:
            harness.process([("a", 1), ("b", 2)])
            write = harness.begin_snapshot()
            harness.process([("a", 10)])
            snapshot = write()
            harness.crash()
        assert snapshot.checkpoint_id == 1
        assert snapshot.size_bytes > 0
        assert bool(snapshot.files) == (backend == "filesystem")
        kept: HarnessSnapshot = pickle.loads(pickle.dumps(snapshot))
        with harness.restored(kept) as after:
            after.process([("a", 1), ("b", 1)])
            assert after.output() == [("a", 2), ("b", 3)]

    def test_every_kind_of_state_survives(self, backend: str) -> None:
        assert_survives_restore(EveryKind, LETTERS, key_by=0, state_backend=backend)
        assert_survives_restore(RunningTotal, LETTERS, key_by=0, state_backend=backend)
        assert_survives_restore(Buffering, [[1], [2, 3], [4, 5], [6, 7]], state_backend=backend)
        said = (1, [{"name": "a", "says": "x"}])
        assert_survives_restore(Join, [[("a", 1)], said, [("a", 2)]], key_by=0, key_by_2="name", state_backend=backend)

    def test_rescaled_to_two_and_back_to_one(self, backend: str) -> None:
        keys = [f"key {number}" for number in range(20)]
        records = [(key, 1) for key in keys]
        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as one:
            one.process(records)
            whole = one.snapshot()
        two = [one.restored(whole, parallelism=2, subtask_index=index) for index in range(2)]
        for half in two:
            half.process(half.share_of(records))
        assert sorted(two[0].output() + two[1].output()) == sorted((key, 2) for key in keys)
        assert 0 < len(two[0].output()) < 20
        halves = [half.snapshot() for half in two]
        for half in two:
            half.close()
        with two[0].restored(halves, parallelism=1) as again:
            again.process(records)
            assert sorted(again.output()) == sorted((key, 3) for key in keys)

    def test_a_columnar_aggregate_survives(self, backend: str) -> None:
        batches = [
            pa.RecordBatch.from_pydict({"airport": [key, "JFK"], "miles": [number, 10]})
            for number, key in enumerate(("LGA", "JFK", "EWR"))
        ]
        operator = ColumnarAggregate(["airport"], {"flights": Count(), "miles": Sum("miles")})
        assert_survives_restore(operator, batches, state_backend=backend)
        ending = ColumnarAggregate(["airport"], {"flights": Count(), "miles": Sum("miles")}, "end")
        assert_survives_restore(ending, batches, state_backend=backend, ordered=False)

    def test_newer_code_restores_an_older_ones_snapshot(self, backend: str) -> None:
        class RunningTotal2(KeyedOperator):
            total = ValueState(int, default=0)
            last = ValueState(int, default=-1)

            def process(self, record: Any, out: Collector) -> None:
                out.collect((self.total.value(), self.last.value()))

        class TotalOfText(KeyedOperator):
            total = ValueState(str, default="")

            def process(self, record: Any, out: Collector) -> None:
                pass

        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as harness:
            harness.process([("a", 5)])
            snapshot = harness.snapshot()
        with OperatorHarness(RunningTotal2, key_by=0, state_backend=backend, restore_from=snapshot) as newer:
            newer.process([("a", 1)])
            assert newer.output() == [(5, -1)]
            assert newer.operator.context.attempt_number == 1
        with pytest.raises(StateIncompatible, match="total"):
            OperatorHarness(TotalOfText, key_by=0, state_backend=backend, restore_from=snapshot)


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


class TestSinks:
    def test_a_file_appears_only_when_its_checkpoint_is_complete(self, tmp_path: Path) -> None:
        with OperatorHarness(FileSink(str(tmp_path))) as harness:
            harness.process([{"n": 1}])
            snapshot = harness.snapshot()
            assert visible(tmp_path) == []
            harness.complete(snapshot)
            assert visible(tmp_path) == [1]

    def test_a_crash_after_the_snapshot_loses_nothing_and_repeats_nothing(self, tmp_path: Path) -> None:
        with OperatorHarness(FileSink(str(tmp_path))) as harness:
            harness.process([{"n": 1}])
            snapshot = harness.snapshot()
            harness.process([{"n": 2}])
            harness.crash()
        assert visible(tmp_path) == []
        with harness.restored(snapshot) as after:
            assert visible(tmp_path) == [1]
            after.process([{"n": 2}])
            after.complete(after.snapshot())
            assert visible(tmp_path) == [1, 2]

    def test_a_job_that_goes_back_takes_its_files_back(self, tmp_path: Path) -> None:
        with OperatorHarness(CollectSink(str(tmp_path))) as harness:
            harness.process([1])
            first = harness.snapshot()
            harness.complete(first)
            harness.process([2])
            harness.complete(harness.snapshot())
            assert read_collected(str(tmp_path)) == [1, 2]
            harness.crash()
        with harness.restored(first):
            assert read_collected(str(tmp_path)) == [1]

    def test_a_sink_is_not_compared_by_an_output_of_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(HarnessMisused, match="nothing to compare"):
            assert_survives_restore(CollectSink(str(tmp_path)), [[1]])


class TestSurvival:
    def test_a_plain_attribute_is_caught_and_named(self) -> None:
        text = failure_of(Forgetful, key_by=0)
        assert text.splitlines() == [
            "Forgetful emits something else when it is restored from a snapshot taken after element 1 of 3, "
            "[('a', 1), ('b', 2)].",
            "  The first difference is output record 3, made of element 2 of 3, [('a', 3)]:",
            "    uninterrupted: ('a', 4)",
            "    this time:     ('a', 3)",
            "  The likely cause is what changed and is in no snapshot:",
            "    attribute 'totals' of Forgetful: {} when it was opened, {'a': 1, 'b': 2} at the barrier, {} after the "
            "restore",
            "  Declare it as state, as in `total = ValueState(int, default=0)` for a KeyedOperator; or put it into an",
            "  OperatorListState in on_checkpoint, and take it out of there in open.",
        ]

    def test_a_variable_of_a_function_is_named(self) -> None:
        seen: set[int] = set()

        def once(number: int) -> list[int]:
            new = number not in seen
            seen.add(number)
            return [number] if new else []

        text = failure_of(FlatMap(once), [[1], [1]])
        assert "variable 'seen' of the function once: set() when it was opened, {1} at the barrier, set() after" in text

    def test_a_class_attribute_is_lost_with_its_process(self) -> None:
        class Shared(Operator):
            seen: ClassVar[list[int]] = []

            def process_batch(self, batch: list[int], out: Collector) -> None:
                self.seen.extend(batch)
                out.collect(len(self.seen))

        text = failure_of(Shared, [[1], [2]])
        assert (
            "class attribute 'seen' of Shared: [] when it was opened, [1] at the barrier, [] after the restore" in text
        )
        assert Shared.seen == []
        text = failure_of(ModuleShared, [[1], [2]])
        assert "class attribute 'seen' of ModuleShared" in text
        assert ModuleShared.seen == []

    def test_an_operator_that_is_not_deterministic_is_told_from_one_that_forgets(self) -> None:
        class Dice(Operator):
            def process_batch(self, batch: list[int], out: Collector) -> None:
                out.emit([random.random() for _ in batch])

        text = failure_of(Dice, [[1], [2]])
        assert "Dice emits something else each time it runs, without any restore" in text

    def test_what_is_raised_after_a_restore_is_told_with_its_cause(self) -> None:
        class Header(Operator):
            columns: tuple[str, ...] = ()

            def process_batch(self, batch: list[Any], out: Collector) -> None:
                for record in batch:
                    if not self.columns:
                        self.columns = record["columns"]
                    else:
                        out.collect(dict(zip(self.columns, record, strict=True)))

        text = failure_of(Header, [[{"columns": ("a",)}], [(1,)], [(2,)]])
        assert "Header raised when it was restored after element 1 of 3" in text
        assert "tuple indices must be integers" in text
        assert "attribute 'columns' of Header: nothing when it was opened, ('a',) at the barrier, nothing" in text

    def test_state_changed_behind_its_back_is_caught(self) -> None:
        class Kept(KeyedOperator):
            numbers = ValueState(list)

            def process(self, record: Any, out: Collector) -> None:
                if self.numbers.value() is None:
                    self.mine: list[int] = []
                    self.numbers.update(self.mine)
                self.mine.append(record[1])
                out.collect(len(self.numbers.value()))

        assert "Kept" in failure_of(Kept, [[("a", 1)], [("a", 2)], [("a", 3)]], key_by=0)

    def test_output_that_is_not_equal_to_itself_is_compared_by_what_it_holds(self) -> None:
        assert_survives_restore(Map(lambda number: (number, float("nan"))), [[1], [2]])

    def test_the_order_in_which_keys_are_gone_through_is_nobodys_promise(self) -> None:
        class AtEnd(Forgetful):
            def on_end(self, out: Collector) -> None:
                out.emit([(key, self.totals[key]) for key in sorted(self.totals, reverse=len(self.totals) > 2)])

        text = failure_of(AtEnd, key_by=0, ordered=False)
        assert "The output is not the same, in whatever order:" in text
        assert "lost: [('a', 4), " in text
        assert_survives_restore(Map(str), [[1, 2]], ordered=False)

    def test_a_sentinel_of_a_class_stays_itself(self) -> None:
        before = Sentinel.NOTHING
        assert_survives_restore(Sentinel, [[1], [2]])
        assert Sentinel.NOTHING is before

    def test_no_folder_is_left_behind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert_survives_restore(RunningTotal, LETTERS, key_by=0, state_backend="filesystem")
        failure_of(Forgetful, key_by=0, state_backend="filesystem")
        assert list(tmp_path.iterdir()) == []

    def test_an_operator_that_changes_its_input_is_no_reason(self) -> None:
        def counted(record: dict[str, int]) -> dict[str, int]:
            record["n"] += 1
            return record

        assert_survives_restore(Map(counted), [[{"n": 1}], [{"n": 2}]])


class TestMisuse:
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


class ModuleShared(Operator):
    """Remembers on the class, which all instances of a process share."""

    seen: ClassVar[list[int]] = []

    def process_batch(self, batch: list[int], out: Collector) -> None:
        self.seen.extend(batch)
        out.collect(len(self.seen))


class Sentinel(Operator):
    """Has an object on its class that is known by its identity."""

    NOTHING: ClassVar[object] = object()

    def process_batch(self, batch: list[int], out: Collector, nothing: object = NOTHING) -> None:
        out.collect(nothing is self.NOTHING)


def visible(directory: Path) -> list[int]:
    """The numbers in the files that a reader sees."""
    files = [path for path in directory.glob("*.parquet") if not path.name.startswith(".")]
    return sorted(row["n"] for path in files for row in pq.read_table(path).to_pylist())
