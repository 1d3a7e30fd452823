"""Backlog: what a snapshot finds of records that no calls have been made of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.async_calls.backlog import Backlog
from understudy.actors.async_calls.settings import AsyncSettings
from understudy.actors.flow.elements import NO_WATERMARK
from understudy.actors.operators.operator import Operator


class Passing(Operator):
    async def process(self, record: Any, out: Any) -> None:
        out.collect(record)


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_the_rest_of_a_batch_that_was_taken_out_goes_before_the_next_one(taken: int) -> None:
    """Also where nothing is left of it: a run has taken all, and its task does not know it yet."""
    operator = Passing()
    operator.context = SimpleNamespace(name="passing")  # type: ignore[assignment]
    backlog = Backlog(operator, AsyncSettings())
    backlog.add_batch([1, 2], 0)
    piece = backlog.take_piece()
    assert piece is not None
    backlog.add_batch([3], 0)
    piece.taken = taken
    rest = list(backlog.rest(taken, piece, NO_WATERMARK)())
    assert [each.record for each in rest] == [1, 2, 3][taken:]
    assert [each.number for each in rest] == [0, 1, 2][taken:]
