"""Sources of the user's that know nothing of subtasks: each subtask reads all, and each record comes several times.

Known from the code of their classes: one that reads its share asks for `context.subtask_index`, deals itself out again
in `rescale`, or gives its context to something else. Whoever submits the job is warned.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import CodeType

from ...actors.operators.source import Source
from ...messages.attributes import attributes_of
from ...messages.code_steps import Step, codes_of, steps
from ...messages.whose_code import is_ours
from .chaining import Size
from .stream_graph import StreamNode
from .users_code import users_classes

log = logging.getLogger(__name__)

_SHARES = frozenset({"subtask_index", "parallelism", "IndexShare", "resources"})
_OF_ITSELF = frozenset({"wake", "clock", "name", "job_id", "attempt_number", "attempt_id", "restored", "is_failover"})
"""What a source takes from its context without any thought of other subtasks."""


def warn_of_sources_read_twice(nodes: Sequence[StreamNode], sizes: Mapping[int, Size]) -> None:
    """Of those in several subtasks."""
    for node in nodes:
        subtasks = sizes[node.position].parallelism
        if subtasks > 1 and isinstance(node.operator, Source) and not knows_subtasks(type(node.operator)):
            log.warning(
                "source %r runs in %d subtasks, and nothing in %s asks which of them it is: each reads all, so each "
                "record comes %d times. Write from_source(..., parallelism=1), or let each subtask read its share, by "
                "self.context.subtask_index and self.context.parallelism",
                node.name,
                subtasks,
                type(node.operator).__name__,
                subtasks,
            )


def knows_subtasks(kind: type[Source]) -> bool:
    """Whether its class may read a share only; of a class of ours: yes."""
    own = list(users_classes(kind))
    if not own or kind.rescale is not Source.rescale or kind.current_splits is not Source.current_splits:
        return True
    if next(base for base in kind.__mro__ if is_ours(base)) is not Source:
        return True  # one of our sources, changed a little
    return any(_asks(code) for base in own for code in _codes(base))


def _codes(kind: type) -> Iterator[CodeType]:
    for each in attributes_of(kind).values():
        function = getattr(each, "fget", None) or getattr(each, "__func__", None) or each
        if (code := getattr(function, "__code__", None)) is not None:
            yield from codes_of(code)


def _asks(code: CodeType) -> bool:
    if _SHARES & {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}:
        return True
    taken = (after for step, after in pairwise(steps(code)) if _loads_attribute(step) and step.value == "context")
    return any(not _loads_attribute(after) or after.value not in _OF_ITSELF for after in taken)


def _loads_attribute(step: Step) -> bool:
    return step.name == "LOAD_ATTR"
