"""LoopTail: after a restore each tail goes on in its own round, however far another one was."""

from __future__ import annotations

from understudy.actors.operators.loops import LoopTail
from understudy.testing import OperatorHarness


def test_a_restored_tail_counts_records_in_its_own_round_and_not_in_that_of_the_furthest() -> None:
    """Else its mark says that nothing was sent back in a round in which something was, and the loop ends early."""
    snapshots = []
    for subtask, rounds in enumerate((3, 2)):
        with OperatorHarness(LoopTail(by_round=True), parallelism=2, subtask_index=subtask) as harness:
            (tail,) = harness.operators
            assert isinstance(tail, LoopTail)
            for number in range(1, rounds):
                tail.mark(number)
            snapshots.append(harness.snapshot())
    with harness.restored(snapshots, parallelism=2, subtask_index=1) as again:
        (tail,) = again.operators
        assert isinstance(tail, LoopTail)
        again.watermark(1)
        again.process(["back"])
        assert tail.mark(2).records == 1
