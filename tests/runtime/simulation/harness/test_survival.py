"""assert_survives_restore: what it finds, and how it names the cause."""

from __future__ import annotations

import gc
import random
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pytest

from understudy import Collector, KeyedOperator, Operator, ValueState
from understudy.actors.operators.flat_map import FlatMap
from understudy.actors.operators.map import Map
from understudy.runtime.connectors.collection_source import CollectionSource
from understudy.runtime.simulation.harness.harness import HarnessMisused
from understudy.runtime.simulation.harness.survival import assert_survives_restore

from .harness_operators import LETTERS, Countdown, Forgetful, RunningTotal


def failure_of(operator: Any, batches: Any = LETTERS, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_survives_restore(operator, batches, **options)
    return str(caught.value)


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

    def test_nothing_of_the_library_is_named(self) -> None:
        """What a keyed operator notes of its timers leads to all that it holds."""

        class Alerts(KeyedOperator):
            def open(self) -> None:
                self.last: defaultdict[str, int] = defaultdict(int)

            def process(self, record: Any, out: Collector) -> None:
                self.last[self.key] += record[1]
                out.collect(self.last[self.key])

        text = failure_of(Alerts, key_by=0)
        assert "attribute 'last' of Alerts" in text
        assert "attribute '_" not in text

    @pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
    def test_a_record_that_cannot_be_sent_says_so(self) -> None:
        """A job says the same."""

        class ForgotAwait(Operator):
            async def process(self, record: Any, out: Collector) -> None:
                out.collect((record, asked(record)))

        async def asked(record: int) -> int:
            return record

        text = failure_of(ForgotAwait, [[1], [2]])
        assert text.startswith("a record that it emits cannot be compared, nor sent to another task: at [1]: ")
        assert "a coroutine cannot be sent or stored" in text
        assert "write `await` before the call that made it" in text
        gc.collect()  # so that nothing is said of them in another test

    def test_times_that_are_no_lists_are_asked_about(self) -> None:
        with pytest.raises(HarnessMisused, match=r"wanted a list for each batch, .*; found 0 for batch 1"):
            assert_survives_restore(Map(str), [["a"], ["b"]], timestamps=[0, 1])  # type: ignore[list-item]

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

    def test_a_variable_of_the_program_that_the_next_attempt_finds_changed_is_named(self) -> None:
        numbers: list[int] = []

        class Numbered(Operator):
            def process(self, record: int, out: Collector) -> None:
                numbers.append(record)
                out.collect((len(numbers), record))

        text = failure_of(Numbered, [[1], [2]])
        assert "emits something else each time it runs, without any restore" in text
        assert "process changes the list 'numbers' (" in text
        assert f"{__file__}:" in text

    def test_an_operator_that_is_not_deterministic_is_told_from_one_that_forgets(self) -> None:
        class Dice(Operator):
            def process_batch(self, batch: list[int], out: Collector) -> None:
                out.emit([random.random() for _ in batch])

        text = failure_of(Dice, [[1], [2]])
        assert "Dice emits something else each time it runs, without any restore" in text
        assert "Look for random numbers, the time of day" in text

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
