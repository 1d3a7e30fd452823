"""Binding: puts accessors in the place of an operator's state declarations."""

from __future__ import annotations

from ..errors import InvalidState
from ..kinds.declared_states import declared_states
from ..kinds.descriptors import OperatorListState
from ..kinds.state_declaration import KeyedStateDeclaration
from .backend import KeyedStateBackend, StateClock
from .operator_state import OperatorStateBackend


def bind_states(
    operator: object,
    keyed: KeyedStateBackend | None,
    lists: OperatorStateBackend,
    operator_name: str = "",
    clock: StateClock | None = None,
) -> None:
    """Give this instance an accessor per declaration of its class, under the same name; its `__dict__` is not touched,
    which would make every access slower. `operator_name` is for error texts, `clock` for state that expires.

    Raises StateIncompatible for restored state that does not fit, and InvalidState for keyed state without a key
    (`keyed` is None).
    """
    for backend in (keyed, lists):
        if backend is not None:
            backend.operator_name = operator_name
    if keyed is None:
        refuse_keyed_state(type(operator))
    else:
        keyed.clock = clock
    for attribute, declared in declared_states(type(operator)).items():
        if isinstance(declared, OperatorListState):
            setattr(operator, attribute, lists.state(declared))
        elif isinstance(declared, KeyedStateDeclaration) and keyed is not None:
            setattr(operator, attribute, keyed.state(declared))


def refuse_keyed_state(cls: type) -> None:
    """Raises InvalidState for a class without a key that declares keyed state."""
    for attribute, declared in declared_states(cls).items():
        if isinstance(declared, KeyedStateDeclaration):
            raise InvalidState(
                f"{cls.__qualname__}.{attribute} is keyed state, and this operator has no key: "
                "subclass KeyedOperator and use it after key_by, or declare an OperatorListState"
            )
