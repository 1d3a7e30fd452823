"""Batches of which no calls have been made, as a snapshot holds them: divided by key group, and not by record.

Behind a large batch most records wait. So they stay as they came, columns as columns. On any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from ...state.keys.key_groups import key_group_range
from ..flow.elements import AnyBatch, TimedBatch
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .batch_parts import form_of, part_of, taken, together
from .frozen_calls import CallInFlight

_LEAST_ROWS: Final = 64
"""Without keys, no part has fewer but the last one."""


class WaitingBatch(NamedTuple):
    batch: AnyBatch
    input_index: int
    watermark_ms: int
    """How far event time had come for it."""
    behind_ms: int
    """The watermark that it waits behind."""


def waiting_calls(waiting: Iterable[WaitingBatch], operator: Operator, number: int) -> Iterator[CallInFlight]:
    """In parts of which each lies in one key group, or, without keys, anywhere: the parts of one group are in the order
    of the input. The records are numbered from `number`; a part has the number of its first one. Raises
    KeySelectionFailed.
    """
    for (where, _), alike in groupby(waiting, lambda each: (each[1:], form_of(each.batch))):
        batch, (input_index, watermark_ms, behind_ms) = together([each.batch for each in alike]), where
        is_keyed = isinstance(operator, KeyedOperator)
        parts = _by_key(batch, operator, input_index) if is_keyed else _even(batch, operator)
        for first, key, part in parts:
            at = number + first
            own = key if is_keyed else at
            yield CallInFlight(own, at, "", "waiting", part, None, watermark_ms, input_index, 0, 0, behind_ms, 0, None)
        number += len(batch)


def _by_key(batch: AnyBatch, operator: Any, input_index: int) -> Iterator[tuple[int, Any, AnyBatch]]:
    """For each key group: the place of the first of its records, that one's key, and all of them in their order."""
    records = batch.records if isinstance(batch, TimedBatch) else batch
    max_parallelism = operator.context.max_parallelism
    selector = operator._selectors[input_index]
    groups = selector.key_groups(records, max_parallelism)
    order = np.argsort(groups.astype(np.uint16), kind="stable")  # 16 bits: NumPy sorts them by radix
    ends = list(accumulate(np.bincount(groups, minlength=max_parallelism).tolist()))
    sorted_batch = taken(batch, order)
    for start, end in pairwise([0, *ends]):
        if start < end:
            part = part_of(sorted_batch, start, end)
            first = part_of(part, 0, 1)
            (key,) = selector.keys(first.records if isinstance(first, TimedBatch) else first)
            yield int(order[start]), key, part


def _even(batch: AnyBatch, operator: Operator) -> Iterator[tuple[int, None, AnyBatch]]:
    """Parts of one size, one for each key group of the subtask if there are enough records."""
    where = operator.context
    groups = len(key_group_range(where.max_parallelism, where.parallelism, where.subtask_index).groups)
    rows = max(_LEAST_ROWS, -(-len(batch) // groups))
    for start in range(0, len(batch), rows):
        yield start, None, part_of(batch, start, start + rows)
