"""SinkContract: what a sink must do, proved against its real system. Derive a test class of pytest from it.

    class TestOrders(SinkContract):
        outside = ("psycopg",)

        def clear(self): ...          # an empty table
        def make_sink(self): return OrderSink(...)
        def contents(self): return [...]

It runs the sink once and records its calls to the outside; then it runs it again for each call, and kills it before,
and after the call took effect; lets the call fail, or its answer be lost; freezes it there, and wakes it when its
successor is done. It rescales, goes back to older checkpoints, and starts again from a savepoint. Each time the outside
system must hold what it must. The number of points is printed (`pytest -s`, or `-rP`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from ....actors.errors import UserCodeError
from ....actors.operators.operator import Operator
from ..harness.harness import OperatorHarness
from ..harness.harness_snapshot import HarnessSnapshot
from .contract import Contract, comparable, differences
from .life import Life, job_of
from .outside_calls import Fault
from .sink_life import CHECKPOINTS, RECORDS_BETWEEN, SinkLife, settle

Guarantee = Literal["exactly once", "upsert", "at least once"]


class SinkContract(Contract):
    """Each method that is not a test may be overridden; `make_sink`, `contents` and `clear` must be."""

    guarantee: ClassVar[Guarantee] = "exactly once"
    """"upsert": by column `id`, the last value counts; a zombie may set an older one, so none is tried."""

    hooks = (
        *("open", "close", "write", "upsert"),
        *("stage", "unstage", "merge", "apply", "last_marker"),
        *("begin_transaction", "pre_commit", "commit", "abort", "recover_and_commit", "recover_and_abort"),
    )

    # -- what a subclass supplies

    def make_sink(self) -> Operator:
        """A new sink into the system as `clear` has left it."""
        raise NotImplementedError(f"{type(self).__name__}.make_sink is not defined")  # abstract

    def contents(self) -> Iterable[Any]:
        """What a reader of the outside system finds: records, as `record` makes them, in any order."""
        raise NotImplementedError(f"{type(self).__name__}.contents is not defined")  # abstract

    def record(self, index: int) -> Any:
        """A record that the sink takes: another one for each index."""
        return {"id": index % 5 if self.guarantee == "upsert" else index, "value": f"value {index}"}

    # -- the tests

    def test_it_writes_what_it_is_given(self) -> None:
        life = self._undisturbed()
        calls = life.calls[0].names
        self._print(f"{len(calls)} calls to the outside are recorded")
        assert calls, "no call to the outside was seen: name the module that is called, as in outside = ('psycopg',)"

    def test_a_zombie_that_wakes_up_after_its_successor(self) -> None:
        if self.guarantee != "upsert":
            super().test_a_zombie_that_wakes_up_after_its_successor()

    def test_a_rescale_from_four_to_two_to_three(self) -> None:
        """Each time before the checkpoint was committed, and after it was."""
        for commits in (False, True):
            self.clear()
            records = self._records(4 * 9)
            story = [f"4, then 2, then 3 subtasks; they had {'' if commits else 'not '}committed before"]
            with self._within(story):
                self._rescale(records, [4, 2, 3], commits=commits)
            self._compare(records, story)

    def test_a_job_that_starts_from_a_savepoint(self) -> None:
        """The job that took it is over; it may not have committed what the savepoint covers."""
        for commits in (False, True):
            self.clear()
            one, two, three = self._parts(3)
            story = [f"the first job had {'' if commits else 'not '}committed when its savepoint was started from"]
            with self._within(story):
                first = OperatorHarness(self.make_sink(), job_id="contract-one")
                self._checkpoint(first, one)
                first.process(two)
                savepoint = first.snapshot()
                if commits:
                    self._commit(first, savepoint)
                first.crash()
                second = OperatorHarness(self.make_sink(), job_id="contract-two", restore_from=savepoint)
                self._commit(second, self._checkpoint(second, three))
                second.close()
            self._compare([*one, *two, *three], story)

    def test_an_older_checkpoint(self) -> None:
        """Nothing that comes after the restore is lost, and nothing that the checkpoint covers is doubled. Records that
        had been committed after it may stay, or be taken back.
        """
        self.clear()
        parts = self._parts(5)
        story = ["three checkpoints were committed, the first was restored, and two more came"]
        with self._within(story):
            job = job_of(self.make_sink())
            first = OperatorHarness._attempt_of(job, [], 1, 0)
            older = self._checkpoint(first, parts[0])
            for part in parts[1:3]:
                self._commit(first, self._checkpoint(first, part))
            first.crash()
            second = OperatorHarness._attempt_of(job, [older], 1, 0)
            for part in parts[3:]:
                self._checkpoint(second, part)
            self._commit(second, second.snapshot())
            second.close()
        self._compare([*parts[0], *parts[3], *parts[4]], story, optional=[*parts[1], *parts[2]])

    # -- details

    def _made(self) -> Operator:
        return self.make_sink()

    def _life(self, faults: Sequence[Fault | None] = (), *, salt: str = "") -> SinkLife:
        self.clear()
        return SinkLife(self.make_sink(), self._records(CHECKPOINTS * RECORDS_BETWEEN), self._watch, faults)

    def _check(self, life: Life) -> None:
        self._compare(self._records(CHECKPOINTS * RECORDS_BETWEEN), life.story, life=life)

    def _records(self, count: int) -> list[Any]:
        return [self.record(index) for index in range(count)]

    def _parts(self, count: int) -> list[list[Any]]:
        records = self._records(count * RECORDS_BETWEEN)
        return [records[at : at + RECORDS_BETWEEN] for at in range(0, len(records), RECORDS_BETWEEN)]

    def _checkpoint(self, harness: OperatorHarness, records: list[Any]) -> HarnessSnapshot:
        harness.process(records)
        snapshot = harness.snapshot()
        harness.complete(snapshot)
        return snapshot

    def _commit(self, harness: OperatorHarness, snapshot: HarnessSnapshot) -> None:
        harness.complete(snapshot)
        assert settle(harness), f"{harness!r} has something left to do for a checkpoint that is complete"

    def _rescale(self, records: list[Any], parallelisms: Sequence[int], *, commits: bool) -> None:
        snapshots: list[HarnessSnapshot] = []
        job = job_of(self.make_sink())
        share = len(records) // sum(parallelisms)
        left = iter(records)
        for generation, parallelism in enumerate(parallelisms, 1):
            attempts = [OperatorHarness._attempt_of(job, snapshots, parallelism, index) for index in range(parallelism)]
            for each in attempts:
                each.process([next(left) for _ in range(share)])
            snapshots = [each.snapshot(generation) for each in attempts]
            is_last = generation == len(parallelisms)
            for each, snapshot in zip(attempts, snapshots, strict=True):
                if commits or is_last:
                    self._commit(each, snapshot)
                if is_last:
                    each.close()
                else:
                    each.crash()

    @contextmanager
    def _within(self, story: list[str]) -> Iterator[None]:
        """If the sink raises in it, the contract fails with this story."""
        try:
            yield
        except UserCodeError as error:
            raised = error.__cause__ or error
            what = f"it fails although nothing was done to it: {type(raised).__name__}: {raised}"
            raise AssertionError(self._story(what, story)) from raised

    def _left_by_clear(self) -> list[str]:
        """The contract was not held: is it the test that is wrong?"""
        self.clear()
        try:
            left = list(self.contents())
        except Exception:  # noqa: BLE001 - there may be no table before a sink was opened
            return []
        if not left:
            return []
        return [
            f"clear() has left {len(left)} records of earlier runs, such as {comparable(left[0])}: empty the table "
            "there, or begin another one, before anything else is looked for"
        ]

    def _compare(
        self, wanted: list[Any], story: list[str], *, optional: Sequence[Any] = (), life: Life | None = None
    ) -> None:
        """`optional`: may be there once or not at all."""
        if self.guarantee == "upsert":
            wanted = list({comparable(record["id"]): record for record in wanted}.values())
        may_repeat = self.guarantee == "at least once"
        problems = differences(wanted, list(self.contents()), optional=optional, may_repeat=may_repeat)
        if problems:
            problems = [*self._left_by_clear(), *problems]
            raise AssertionError(self._story("the outside system does not hold what it must", story, problems, life))
