"""Which state each subtask restores from, after a rescale too. Works on handles alone; no file is read.

Keyed state goes by key group; operator lists as their mode says. Flink: StateAssignmentOperation,
RoundRobinOperatorStateRepartitioner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from ...messages import (
    NO_EDGE,
    InputWatermark,
    KeyedStateHandle,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
)
from ..keys.key_groups import key_group_range

Lists: TypeAlias = list[tuple[int, OperatorListHandle]]
"""(old subtask, its handle) of one list state, in subtask order."""

Shares: TypeAlias = list[list[OperatorListHandle]]
"""By new subtask."""


def assign_state(
    subtasks: Mapping[SubtaskIndex, SubtaskState], old_parallelism: int, parallelism: int, max_parallelism: int
) -> list[SubtaskState | None]:
    """The snapshot of a vertex that is what it was, dealt out to `parallelism` subtasks; None: nothing for this one.

    `max_parallelism` is the one the snapshot was taken with. For a job, whose vertices may have changed, this is put
    together of the same parts by RestoredOperators (actors/restore).
    """
    old = subtask_states(subtasks, old_parallelism)
    operators = dict.fromkeys(operator for state in old if state for operator in state.operators)
    dealt = {
        operator: assign_operator(subtasks, operator, old_parallelism, parallelism, max_parallelism)
        for operator in operators
    }
    assigned = assign_vertex(old, dealt, assign_ended(old, parallelism))
    return [None if state == SubtaskState({}) else state for state in assigned]


def subtask_states(subtasks: Mapping[SubtaskIndex, SubtaskState], parallelism: int) -> list[SubtaskState | None]:
    """Of all subtasks of a vertex; None: it acknowledged without state."""
    return [subtasks.get(SubtaskIndex(index)) for index in range(parallelism)]


def assign_vertex(
    old: Sequence[SubtaskState | None],
    operators: Mapping[OperatorId, Sequence[OperatorSubtaskState]],
    ended: Sequence[bool],
) -> list[SubtaskState]:
    """What each subtask of a vertex restores: of its operators, by new subtask, and whether its data has `ended`.

    `old`: the subtasks of this very vertex, if there was one. What was in flight goes to the same subtask; a
    parallelism that is not the old one is for aligned snapshots.
    """
    parallelism = len(ended)
    watermarks = assign_watermarks([() if state is None else state.watermarks for state in old], parallelism)
    channels = [() if state is None else state.channels for state in old]
    if len(old) != parallelism:
        channels = [()] * parallelism
    own = [
        {operator: shares[index] for operator, shares in operators.items() if shares[index] != OperatorSubtaskState()}
        for index in range(parallelism)
    ]
    return list(map(SubtaskState, own, ended, channels, watermarks))


def assign_ended(old: Sequence[SubtaskState | None], parallelism: int) -> list[bool]:
    """Whose data has ended, by new subtask: with another parallelism, if that of all old ones has."""
    ended = [state is not None and state.data_ended for state in old]
    return ended if len(old) == parallelism else [all(ended)] * parallelism


def assign_operator(
    subtasks: Mapping[SubtaskIndex, SubtaskState],
    operator: OperatorId,
    old_parallelism: int,
    parallelism: int,
    max_parallelism: int,
) -> list[OperatorSubtaskState]:
    """One operator's state in a vertex's snapshot, dealt out to `parallelism` subtasks, of whichever vertex."""
    old = operator_states(subtasks, operator, old_parallelism)
    lists = redistribute_lists([state.lists for state in old], parallelism)
    return [
        OperatorSubtaskState(
            tuple(_own_keyed(old, key_group_range(max_parallelism, parallelism, index).groups)), tuple(lists[index])
        )
        for index in range(parallelism)
    ]


def operator_states(
    subtasks: Mapping[SubtaskIndex, SubtaskState], operator: OperatorId, parallelism: int
) -> list[OperatorSubtaskState]:
    """One operator's state by subtask; an empty one where there is none."""
    nothing, empty = SubtaskState({}), OperatorSubtaskState()
    return [subtasks.get(SubtaskIndex(index), nothing).operators.get(operator, empty) for index in range(parallelism)]


def intersection(a: range, b: range) -> range:
    """The key groups in both; empty when there are none. Flink: KeyGroupRange.getIntersection."""
    return range(max(a.start, b.start), min(a.stop, b.stop))


def _own_keyed(old: list[OperatorSubtaskState], own: range) -> Iterator[KeyedStateHandle]:
    for state in old:
        for handle in state.keyed:
            cut = cut_handle(handle, own)
            if cut is not None:
                yield cut


def cut_handle(handle: KeyedStateHandle, own: range) -> KeyedStateHandle | None:
    """The share of a handle that lies in these key groups; None for none. Negative groups are headers, and stay."""
    whole = range(handle.first_key_group, handle.last_key_group + 1)
    shared = intersection(whole, own)
    if shared == whole:
        return handle
    if not shared:
        return None
    offsets = {group: at for group, at in handle.offsets.items() if group < 0 or group in shared}
    return replace(handle, first_key_group=shared[0], last_key_group=shared[-1], offsets=offsets)


def redistribute_lists(old: list[tuple[OperatorListHandle, ...]], parallelism: int) -> Shares:
    """Operator lists by old subtask, dealt out to new ones; an unchanged parallelism leaves "split" lists in place."""
    shares: Shares = [[] for _ in range(parallelism)]
    by_name: dict[str, Lists] = {}
    for index, handles in enumerate(old):
        for handle in handles:
            by_name.setdefault(handle.name, []).append((index, handle))
    start = 0
    for name in sorted(by_name):
        lists = by_name[name]
        match lists[0][1].mode:
            case "union":
                _union(lists, shares)
            case "broadcast":
                _broadcast(lists, shares)
            case _ if len(old) == parallelism:
                for index, handle in lists:
                    shares[index].append(handle)
            case _:
                start = _split(lists, shares, start)
    return shares


def _union(lists: Lists, shares: Shares) -> None:
    for share in shares:
        share.extend(handle for _, handle in lists)


def _broadcast(lists: Lists, shares: Shares) -> None:
    """Each subtask gets its own list back, as lists differ if barriers have overtaken records. One that had none gets
    another's.
    """
    own = dict(lists)
    for index, share in enumerate(shares):
        share.append(own.get(index, lists[index % len(lists)][1]))


def _split(lists: Lists, shares: Shares, start: int) -> int:
    """Cut all items, in order of their old subtasks, into runs that differ by one at most.

    The longer runs go to the subtasks from `start` on; returns where the next state's longer runs go, so that they
    do not all land on subtask 0.
    """
    parallelism = len(shares)
    left = [(handle, 0) for _, handle in lists]
    base, longer = divmod(sum(max(0, len(handle.offsets) - 1) for handle, _ in left), parallelism)
    for turn in range(parallelism):
        share = shares[(start + turn) % parallelism]
        wanted = base + (turn < longer)
        while wanted and left:
            handle, taken = left.pop(0)
            available = len(handle.offsets) - 1 - taken
            count = min(wanted, available)
            if count > 0:
                share.append(replace(handle, offsets=handle.offsets[taken : taken + count + 1]))
            if count < available:
                left.insert(0, (handle, taken + count))
            wanted -= max(count, 0)
    return (start + longer) % parallelism


def assign_watermarks(
    by_subtask: Sequence[tuple[InputWatermark, ...]], parallelism: int
) -> list[tuple[InputWatermark, ...]]:
    """How far event time has come in each of `parallelism` subtasks that go on for these: as far as before, or with
    another parallelism, for each input, as far as in the slowest. An input that one of them knew nothing of yet holds
    all back.
    """
    if len(by_subtask) == parallelism:
        return list(by_subtask)
    least: dict[int, int] = {}
    for each in chain.from_iterable(by_subtask):
        least[each.input_index] = min(each.watermark_ms, least.get(each.input_index, each.watermark_ms))
    known = set(least).intersection(*({each.input_index for each in watermarks} for watermarks in by_subtask))
    share = tuple(InputWatermark(NO_EDGE, SubtaskIndex(0), each, least[each]) for each in sorted(known))
    return [share] * parallelism
