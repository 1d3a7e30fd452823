"""Operator lists beside a broadcast stream: which have another mode than what is put into them needs, and which of mode
"broadcast" are changed where there is a key, which only one subtask has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType

from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...messages import Partitioning
from ...messages.attributes import attributes_of
from ...messages.code_steps import certain_steps, placed_steps, steps
from ...messages.whose_code import is_ours
from ...state import OperatorListState, declared_states
from .chaining import Size
from .errors import InvalidOperator
from .other_hooks import OF_SECOND_INPUT
from .stream_graph import StreamNode
from .users_code import users_classes, users_codes

log = logging.getLogger(__name__)

_CHANGES = frozenset({"add", "add_all", "update", "clear"})
_AFTERWARDS = {
    "split": "goes on with another parallelism, its items are dealt out, and each subtask has some of them",
    "union": "goes on, each subtask has the items of all of them, each item several times",
}


def check_lists_changed_by_key(kind: type[Operator]) -> None:
    """Raises InvalidOperator, with the line, for a `process` or `on_timer` of the user's that changes a list of mode
    "broadcast": the first record to come there would fail the job.

    Only direct changes (`self.rules.add(...)`) that each call makes are found. A hook that another method of the class
    calls is passed over: it may be called without a key.
    """
    if not issubclass(kind, KeyedOperator):
        return
    declared = declared_states(kind).items()
    lists = {name for name, state in declared if isinstance(state, OperatorListState) and state.mode == "broadcast"}
    for hook in ("process", "on_timer") if lists else ():
        method = getattr(kind, hook)
        if isinstance(method, FunctionType) and not is_ours(method) and not _has_other_callers(kind, hook):
            for name, place in _certain_changes(method.__code__):
                if name in lists:
                    raise InvalidOperator(
                        f"{place}: {kind.__name__}.{hook} changes the list {name!r}, which must be the same in all "
                        "subtasks (mode='broadcast'), but only the subtask that has the key would change it: change "
                        "it in process_2 of keyed.connect(rules.broadcast()), or keep what belongs to the key in a "
                        "ListState"
                    )


def warn_of_lists_that_differ(nodes: Sequence[StreamNode], sizes: Mapping[int, Size]) -> None:
    """Each subtask has a list of its own, and after a restore all have that of one."""
    for node in nodes:
        declared = declared_states(type(node.operator)).items()
        lists = [name for name, state in declared if isinstance(state, OperatorListState) and state.mode == "broadcast"]
        is_alone = sizes[node.position].parallelism == 1 or not node.inputs
        if lists and not is_alone and Partitioning.BROADCAST not in {edge.partitioning for edge in node.inputs}:
            log.warning(
                "operator %r has %d subtasks and an OperatorListState with mode='broadcast', %r, and none of its "
                "inputs is broadcast: what one subtask puts into the list the others do not have, and after a restore "
                "all have the list of one. Write .broadcast() behind the stream that the list is made of",
                node.name,
                sizes[node.position].parallelism,
                lists[0],
            )


def warn_of_rules_dealt_out(nodes: Sequence[StreamNode]) -> None:
    """A list into which only the second input, a broadcast one, is put is the same in all subtasks."""
    for node in nodes:
        second = [edge for edge in node.inputs if edge.input_index == 1]
        if not second or any(edge.partitioning is not Partitioning.BROADCAST for edge in second):
            continue
        for name, state in declared_states(type(node.operator)).items():
            if isinstance(state, OperatorListState) and state.mode != "broadcast":
                places = dict(_changed_in(type(node.operator), name))
                if places and places.keys() <= set(OF_SECOND_INPUT):
                    log.warning(
                        "operator %r puts into the list %r only what its broadcast stream brings (%s), so it is the "
                        "same in all subtasks, and its mode is %r: when the job %s. Write OperatorListState(..., "
                        "mode='broadcast')",
                        node.name,
                        name,
                        next(iter(places.values())),
                        state.mode,
                        _AFTERWARDS[state.mode],
                    )


def _changed_in(kind: type[Operator], name: str) -> Iterator[tuple[str, str]]:
    """The methods of the user's with a `self.name.add(...)` or the like, and its `file:line`."""
    for _, method, code in users_codes(kind):
        last = ""
        for step, place in placed_steps(code):
            if last == name and step.value in _CHANGES:
                yield method, place
            last = str(step.value)


def _has_other_callers(kind: type[Operator], hook: str) -> bool:
    """Whether another method has the hook's name in it, or is the same function."""
    itself = getattr(kind, hook)
    others = (value for cls in users_classes(kind) for name, value in attributes_of(cls).items() if name != hook)
    codes = (code for _, method, code in users_codes(kind) if method != hook)
    return any(each is itself for each in others) or any(step.value == hook for code in codes for step in steps(code))


def _certain_changes(code: CodeType) -> Iterator[tuple[str, str]]:
    """Attribute and place of each `self.attribute.add(...)` or the like before the first branch, loop or `try`: what
    follows may never run. Functions defined inside are left out.
    """
    itself = code.co_varnames[:1] if code.co_argcount else ()
    last = ("", "")
    for step, place in certain_steps(code):
        if last[0] in itself and step.value in _CHANGES:
            yield last[1], place
        last = (last[1], str(step.value))
