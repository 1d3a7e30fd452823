"""Operator lists beside a broadcast stream: which have another mode than what is put into them needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from ...actors.operators.operator import Operator
from ...messages import Partitioning
from ...messages.code_steps import placed_steps
from ...state import OperatorListState, declared_states
from .chaining import Size
from .stream_graph import StreamNode
from .users_code import users_codes

log = logging.getLogger(__name__)

_CHANGES = frozenset({"add", "add_all", "update", "clear"})
_OF_SECOND = frozenset({"process_2", "process_batch_2"})
_AFTERWARDS = {
    "split": "goes on with another parallelism, its items are dealt out, and each subtask has some of them",
    "union": "goes on, each subtask has the items of all of them, each item several times",
}


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
                if places and set(places) <= _OF_SECOND:
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
