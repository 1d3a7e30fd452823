"""Whether a function compares one of its arguments, or counts with it: found in its code.

What is done with an attribute or an item of it, or with what a call makes of it, is not done with the argument.
"""

from __future__ import annotations

from types import CodeType

from ...messages.code_steps import Step, inner_codes, steps

_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF"})
_STORES = frozenset({"STORE_FAST", "STORE_DEREF"})
_OF_TWO = frozenset({"BINARY_OP", "COMPARE_OP"})
_OF_ONE = frozenset({"UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT"})
_CHAINED = ("SWAP", "COPY", "COMPARE_OP")
"""Behind the middle one of `a < name < b`."""
_ADD = _LOADS | {"LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME", "PUSH_NULL", "KW_NAMES"}
_OR = frozenset({"JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "COPY", "TO_BOOL", "NOT_TAKEN", "POP_TOP"}) | {
    "POP_JUMP_IF_TRUE",
    "POP_JUMP_IF_FALSE",
}
"""Of `or` and `and`, which take the topmost value; behind them the stack is as deep, whichever way was gone."""
_SUBSCRIPT = 26
"""The argument of BINARY_OP in `name[0]`, from 3.14 on; BINARY_SUBSCR before."""


def is_counted_with(name: str, code: CodeType) -> bool:
    """`name`: an argument of the function, or a variable of it in a function within it. False where it is assigned."""
    every = list(steps(code))
    if any(each.name in _STORES and each.value == name for each in every):
        return False
    if any(_is_operand(every[at + 1 :]) for at, each in enumerate(every) if each.name in _LOADS and each.value == name):
        return True
    return any(is_counted_with(name, inner) for inner in inner_codes(code) if name in inner.co_freevars)


def _is_operand(behind: list[Step]) -> bool:
    """Whether a comparison or arithmetic takes the topmost value from the stack. `behind`: the steps that
    follow; where one is of another kind than expressions of names, calls and attributes have, the answer is no.
    """
    if tuple(each.name for each in behind[: len(_CHAINED)]) == _CHAINED:
        return True
    depth = 1  # of the stack, with the value at its bottom
    for each in behind:
        is_subscript = each.name == "BINARY_SUBSCR" or (each.name == "BINARY_OP" and each.arg == _SUBSCRIPT)
        if is_subscript or each.name in _OF_TWO:
            if depth <= 2:
                return not is_subscript
        elif each.name == "CONTAINS_OP":
            if depth <= 2:
                return depth == 2
        elif each.name in _OF_ONE:
            if depth == 1:
                return True
        elif each.name == "CALL":
            if depth + each.effect <= 1:
                return False
        elif each.name == "LOAD_ATTR" or each.name in _OR:
            if depth == 1 or (each.name == "COPY" and each.arg != 1):
                return False
        elif each.name not in _ADD:
            return False
        depth += each.effect
    return False
