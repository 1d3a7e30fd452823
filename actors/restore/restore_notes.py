"""What a program that fits a checkpoint may not be meant to do with it: state that begins empty beside state that
nobody declares, fields that are forgotten, lists whose mode is another, operators that only a number distinguishes.

Each note is a sentence for the user. Nothing of it keeps the job from starting.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from ...messages import JobVertex, OperatorDescription, OperatorId, StateDescription
from ...state.kinds.schema_losses import losses
from ...state.kinds.state_descriptions import CALLS, conversion, is_columnar, is_keyed, names_of, state_misfit
from .restored_operators import FoundOperator

_TIMERS = "timers"
"""The name of the state that an operator with `on_timer` describes."""

_NUMBERED = re.compile(r"(.+)-\d+")
"""How operators are called that were given no name: by their class or method, and their place among those."""

Pair = tuple[OperatorDescription, OperatorDescription]
"""An operator of the program that has keyed state in the checkpoint, and as the checkpoint describes it."""


def restore_notes(
    pairs: Iterable[Pair], program: Iterable[OperatorDescription], stored: Iterable[OperatorId]
) -> list[str]:
    """`program`: all operators that declare state; `stored`: the ids of all that the checkpoint has state of."""
    found = [(now, was, tuple(filter(is_keyed, was.states))) for now, was in pairs]
    return [
        *(note for now, _, states in found for note in _begun_anew(now, states)),
        *(note for now, was, _ in found for note in _by_other_keys(now, was)),
        *(note for now, _, states in found for note in _forgotten(now, states)),
        *_numbered({each.operator_id for each in program}, set(stored)),
    ]


_SHARES = {
    "split": "each has some of the items",
    "union": "each has the items of all of them",
    "broadcast": "each has the items of one of them",
}
"""By the mode that a list was stored with."""


def other_modes(vertex: JobVertex, operator: OperatorDescription, found: FoundOperator) -> Iterator[str]:
    """Lists are given to the subtasks by the mode that they were stored with. Nothing is said of those that come as by
    the new one, unless that takes the share of each subtask for the list of all from the next savepoint on.
    """
    was, now = found.vertex.parallelism, vertex.parallelism
    declared = {name: state for state in operator.states if state.mode for name in names_of(state)}
    held = {each.name: each.mode for state in found.states() for each in state.lists if len(each.offsets) > 1}
    for name, stored in held.items():
        wanted = declared.get(name)
        if (
            wanted is None
            or stored == wanted.mode
            or (was == now and (now == 1 or (stored, wanted.mode) == ("broadcast", "split")))
        ):
            continue
        yield (
            f"operator {operator.name!r}: the list {name!r} was stored with mode {stored!r}, and its mode is "
            f"{wanted.mode!r} now, which counts from the next savepoint on. This time its items go to the subtasks, of "
            f"which there were {was} and are {now}, as {stored!r} says: "
            f"{'one has all the items' if now == 1 and stored == 'split' else _SHARES[stored]}"
            f"{_what_to_do(stored, wanted.mode, was, now)}"
        )


def _what_to_do(stored: str, wanted: str, was: int, now: int) -> str:
    if stored == "split" and wanted == "broadcast" and was > 1:
        later = (
            ". If the lists differ, a later change of the parallelism, which gives each subtask the list of one of "
            "them, loses items or doubles them"
        )
        return (
            f"{later if now > 1 else ''}. If all have the same list, restore at parallelism {was}, where each keeps "
            f"its own; else at parallelism 1, where one subtask has all the items{_CHANGE_LATER}"
        )
    if was == now or stored == "union":
        return ""
    return f". Restore at parallelism {was}, where each subtask keeps its own items{_CHANGE_LATER}"


_CHANGE_LATER = ". Change the parallelism only after the next savepoint, which stores the new mode"


def _begun_anew(operator: OperatorDescription, stored: Sequence[StateDescription]) -> Iterator[str]:
    """A state that was renamed looks so; and an `on_timer` that was taken out."""
    declared = [each for each in operator.states if _is_of_keys(each)]
    names = {name for each in declared for name in names_of(each)}
    there = {each.name for each in stored}
    gone = [each for each in stored if _is_of_keys(each) and each.name not in names]
    fresh = [each for each in declared if there.isdisjoint(names_of(each))]
    takes_none = len(fresh) == len(declared)
    pairs = [
        (new, old)
        for new in fresh
        for old in gone
        if takes_none or not state_misfit(new, old) or get_close_matches(new.name, [old.name])
    ]
    if pairs:
        new, old = min(pairs, key=_how_far)
        yield (
            f"operator {operator.name!r}: state {', '.join(repr(each.name) for each in fresh)} begins empty, and state "
            f"{', '.join(repr(each.name) for each in gone)} of the savepoint is declared no more"
            f"{_if_renamed(new, old)}"
        )
    if _TIMERS in there and all(each.name != _TIMERS for each in operator.states):
        yield (
            f"operator {operator.name!r} had on_timer, and has none now: a timer that it has set fails the job when it "
            "is due; define on_timer, which may do nothing"
        )


def _how_far(pair: tuple[StateDescription, StateDescription]) -> int:
    """The least is the likeliest: one that fits, or can be made to fit, before one that cannot."""
    misfit = state_misfit(*pair)
    return 0 if not misfit else 1 if conversion(*pair) else 2


def _if_renamed(new: StateDescription, old: StateDescription) -> str:
    """Advice for a state of another name that is the old one."""
    misfit = state_misfit(new, old)
    renamed = f": a state that has another name now says so, as {new.kind}(...).formerly({old.name!r}) for {new.name!r}"
    if not misfit:
        return renamed
    if how := conversion(new, old):
        return f"{renamed}; as {misfit}, {how}let it begin empty"
    return f"; {old.name!r} cannot become {new.name!r}: {misfit}"


def _by_other_keys(now: OperatorDescription, was: OperatorDescription) -> Iterator[str]:
    """Where columns make the keys of both. Releases that did not store them say nothing."""
    for before, today in zip(was.keys, now.keys, strict=False):
        if before and today and before != today:
            yield (
                f"operator {now.name!r} is keyed by {today}, and the state of the savepoint by {before}: state is "
                "found under equal keys only, so each other one begins with none"
            )


def _is_of_keys(state: StateDescription) -> bool:
    return is_keyed(state) and not is_columnar(state) and state != CALLS and state.name != _TIMERS


def _forgotten(operator: OperatorDescription, stored: Sequence[StateDescription]) -> Iterator[str]:
    declared = {name: each for each in operator.states for name in names_of(each)}
    for state in stored:
        wanted = declared.get(state.name)
        if wanted is not None and wanted.kind == state.kind and not is_columnar(wanted):
            for lost in losses(wanted.schema, state.schema):
                yield f"operator {operator.name!r}, state {wanted.name!r}: {lost}"


def _numbered(program: set[OperatorId], stored: set[OperatorId]) -> Iterator[str]:
    """Operators of one kind that were given no name, where the program has others of them than the checkpoint."""
    kinds: dict[str, set[OperatorId]] = defaultdict(set)
    for each in program | stored:
        if match := _NUMBERED.fullmatch(each):
            kinds[match[1]].add(each)
    for ids in kinds.values():
        changed = sorted(ids & (program ^ stored))
        if changed and ids & program & stored:
            kept = ", ".join(map(repr, sorted(ids & program & stored)))
            new = [repr(each) for each in changed if each in program]
            what = (
                f"{', '.join(new)} begins without state"
                if new
                else f"nobody takes that of {', '.join(map(repr, changed))}"
            )
            yield (
                f"operators without a name are known by their place among those of their kind: {kept} takes over "
                f"the state of that name, and {what}. If operators were added, removed or moved before them, each has "
                "now the state of another one: give them names or uids, the old ones (`.uid('old-1')`) to those that "
                "are to have that state"
            )
