"""LoopTail: after a restore each tail goes on in its own round, however far another one was."""

from __future__ import annotations

import pytest

from understudy.actors.operators.loops import LoopTail
from understudy.testing import OperatorHarness


@pytest.mark.parametrize(("subtask", "over", "number"), [(1, 1, 2), (0, 2, 3)])
def test_a_restored_tail_counts_records_in_its_own_round_and_not_in_that_of_another_one(
    subtask: int, over: int, number: int
) -> None:
    """Else its mark says that nothing was sent back in a round in which something was, and the loop ends early."""
    snapshots = []
    for index, rounds in enumerate((3, 2)):
        with OperatorHarness(LoopTail(by_round=True), parallelism=2, subtask_index=index) as harness:
            (tail,) = harness.operators
            assert isinstance(tail, LoopTail)
            for passed in range(1, rounds):
                tail.mark(passed)
            snapshots.append(harness.snapshot())
    with harness.restored(snapshots, parallelism=2, subtask_index=subtask) as again:
        (tail,) = again.operators
        assert isinstance(tail, LoopTail)
        again.watermark(over)
        again.process(["back"])
        assert tail.mark(number).records == 1


def test_a_tail_that_takes_over_from_two_has_the_records_of_both_in_its_round() -> None:
    """With those of one of them alone the mark may say that none was sent back, and the loop ends early."""
    snapshots = []
    for index, records in enumerate((["back", "too"], [])):
        with OperatorHarness(LoopTail(by_round=True), parallelism=2, subtask_index=index) as harness:
            harness.process(["back", *records])
            snapshots.append(harness.snapshot())
    with harness.restored(snapshots, parallelism=1, subtask_index=0) as again:
        (tail,) = again.operators
        assert isinstance(tail, LoopTail)
        assert tail.mark(1).records == 4
