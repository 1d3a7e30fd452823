"""What an operator of the user's holds, as the trials look for causes in it: attributes, and what its lists hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_origin

import cloudpickle

from ....actors.operators.operator import Operator
from ....messages.attributes import attributes_of
from ....messages.own_annotations import own_annotations
from ....messages.whose_code import is_ours
from ....state import OperatorListState, StateDeclaration, declared_states
from ..harness.attribute_watch import Held, what_is_held


def held_by(operator: Operator) -> Held:
    """What its user gave it: the attributes of our own classes are found again by other means."""
    is_of_us = is_ours(type(operator))
    own = {f"attribute {name!r} of {type(operator).__name__}" for name in _names_of_ours(type(operator))}
    return {
        what: value
        for what, value in what_is_held([operator]).items()
        if what not in own and not (is_of_us and what.startswith("attribute "))
    }


def holds_sets(state: StateDeclaration) -> bool:
    kinds = (getattr(state, name, None) for name in ("type", "value_type"))
    return any((get_origin(kind) or kind) in (set, frozenset) for kind in kinds)


def advice_on_lists(operator: Operator) -> str:
    """Advice for an attribute that is made of the operator's lists; empty where it has none."""
    of_user = {} if is_ours(type(operator)) else declared_states(type(operator))
    own = set(_names_of_ours(type(operator)))
    lists = {name: each for name, each in of_user.items() if isinstance(each, OperatorListState) and name not in own}
    if not lists:
        return ""
    named = ", ".join(f"{name!r} ({each.mode!r})" for name, each in lists.items())
    return (
        f"Is it made of {named}? At a barrier, update(...) replaces what the list holds, and add(...) adds to it; "
        "after a restore, a subtask has several items or none of 'split', and those of all subtasks of 'union'"
    )


def held_and_listed(operator: Operator) -> Held:
    """The same, and what its declared lists hold."""
    declared = declared_states(type(operator)).items()
    lists = [(name, getattr(operator, name)) for name, each in declared if isinstance(each, OperatorListState)]
    return {**held_by(operator), **{f"state {name!r}": cloudpickle.dumps(list(each.get())) for name, each in lists}}


def is_the_users_hook(operator: Operator, hook: str) -> bool:
    """Whether the class that defines it is none of ours."""
    return not is_ours(next(kind for kind in type(operator).__mro__ if hook in vars(kind)))


def _names_of_ours(kind: type) -> Iterator[str]:
    """Those that our classes declare, and the private ones that their methods use."""
    for base in filter(is_ours, kind.__mro__):
        yield from attributes_of(base)
        yield from own_annotations(base)
        for method in attributes_of(base).values():
            code = getattr(method, "__code__", None)
            yield from (name for name in getattr(code, "co_names", ()) if name.startswith("_"))
