"""Replaced states: `self.total = 1` in an operator puts a value in the place of its state. Found in the code, unrun."""

from __future__ import annotations

import dis
from types import CodeType, FunctionType

from ...actors.operators.operator import Operator
from ...state.kinds.declared_states import declared_states
from .errors import InvalidOperator
from .private_names import is_ours


def check_states_stay(operator: Operator) -> None:
    """Raises InvalidOperator for a method of a user's class that assigns to a declared state, with its line."""
    kind = type(operator)
    declared = declared_states(kind)
    if not declared or getattr(operator, "compiled", False):  # which has an error of its own for it
        return
    for owner in kind.__mro__:
        if is_ours(owner):
            continue
        for method in vars(owner).values():
            if isinstance(method, FunctionType):
                _check(f"{kind.__name__}.{method.__name__}", method.__code__, frozenset(declared))


def _check(what: str, code: CodeType, states: frozenset[str]) -> None:
    if not code.co_argcount:
        return
    self, before, line = code.co_varnames[0], None, code.co_firstlineno
    for step in dis.get_instructions(code):
        if step.positions is not None:
            line = step.positions.lineno or line
        if step.opname == "STORE_ATTR" and step.argval in states and _loads(before, self):
            name = step.argval
            raise InvalidOperator(
                f"{what} assigns to the state {name!r} ({code.co_filename}:{line}), and a value in its place would be "
                f"in no checkpoint and of no key: write self.{name}.update(...), or give the attribute another name"
            )
        before = step


def _loads(step: dis.Instruction | None, name: str) -> bool:
    """Whether it puts this variable on top of the stack; newer Pythons load two at once."""
    if step is None or not step.opname.startswith("LOAD_FAST"):
        return False
    return bool(step.argval[-1] == name if isinstance(step.argval, tuple) else step.argval == name)
