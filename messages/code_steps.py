"""Code of functions: what lies inside, and its instructions in one vocabulary, whichever Python compiled it.

Python 3.11 has `PRECALL` and `LOAD_METHOD`; 3.12 has `RETURN_CONST`; 3.13 loads two variables at once; 3.14 borrows
them, and its `RETURN_VALUE` leaves the stack alone; 3.15 has None among its common constants. Whoever looks at a user's
code asks for its steps, and not `dis`.
"""

from __future__ import annotations

import dis
import re
import weakref
from collections.abc import Callable, Iterator
from itertools import takewhile
from types import CodeType
from typing import Any, NamedTuple

_SAME_AS = {
    "LOAD_METHOD": "LOAD_ATTR",
    "CALL_KW": "CALL",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "LOAD_COMMON_CONSTANT": "LOAD_CONST",
}
_SLOT = re.compile("(LOAD|STORE)_FAST")
_BEFORE_CALL = "PRECALL"
"""Takes the arguments from the stack for the CALL behind it: one step here."""
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})


class Step(NamedTuple):
    """`name`: the instruction's, as 3.12 has it. `value`: what its argument stands for. `effect`: on the stack's depth,
    if it does not jump, and `jump_effect`, if it does. `line`: of the source. `offset`: of its instruction, and
    `jumps_to` that of another one. `is_inlined`: it belongs to a comprehension that is no code of its own, as from 3.12
    on.
    """

    name: str
    value: Any
    arg: int
    effect: int
    line: int
    is_jump_target: bool
    offset: int = 0
    jumps_to: int | None = None
    jump_effect: int = 0
    is_inlined: bool = False


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's own, and of those within it."""
    yield code
    for inner in inner_codes(code):
        yield from codes_of(inner)


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


_known: dict[int, tuple[weakref.ref[CodeType], tuple[Step, ...]]] = {}
"""By the code's id, as long as it lives: codes of one text are equal in 3.11, even if their lines are not."""


def steps(code: CodeType) -> Iterator[Step]:
    """In their order. One instruction that does two things is two steps.

    A dozen checks of each job look at the methods of its operators, and at those of their bases in each job: they are
    read once.
    """
    number = id(code)
    if number not in _known:

        def forget(_: object, forgotten: Callable[[int, None], object] = _known.pop) -> None:
            forgotten(number, None)

        _known[number] = (weakref.ref(code, forget), tuple(_steps(code)))
    return iter(_known[number][1])


def _steps(code: CodeType) -> Iterator[Step]:
    line, taken, is_target = code.co_firstlineno, 0, False
    comprehension = _Inlined()
    for each in dis.get_instructions(code):
        line = (each.positions.lineno if each.positions else None) or line
        is_target |= each.is_jump_target
        if each.opname == "EXTENDED_ARG":
            continue
        effect = dis.stack_effect(each.opcode, each.arg, jump=False)
        if each.opname == _BEFORE_CALL:
            taken = effect
            continue
        jumps_to = each.argval if each.opcode in _JUMPS else None
        jump_effect = 0 if jumps_to is None else dis.stack_effect(each.opcode, each.arg, jump=True)
        is_inlined = comprehension.goes_on(each.opname)
        for name, value, part in _divided(each, effect + taken):
            yield Step(
                name, value, each.arg or 0, part, line, is_target, each.offset, jumps_to, jump_effect, is_inlined
            )
            is_target = False
        taken = 0


def placed_steps(code: CodeType) -> Iterator[tuple[Step, str]]:
    """Each with where it stands: `file:line`."""
    return ((each, f"{code.co_filename}:{each.line}") for each in steps(code))


def certain_steps(code: CodeType) -> Iterator[tuple[Step, str]]:
    """What each call does, whatever it is given: the placed steps before the first branch, loop, `await`, `try` or
    `with`, which may be `suppress`.
    """
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    handlers = {each.offset for each in steps(code) if each.name == "PUSH_EXC_INFO"}
    tried = min((each.start for each in entries if each.target in handlers), default=len(code.co_code))
    return takewhile(lambda each: each[0].jumps_to is None and each[0].offset < tried, placed_steps(code))


class _Inlined:
    """Whether the instructions, one after the other, belong to an inlined comprehension. Its own loops end it."""

    def __init__(self) -> None:
        self._is_begun = False
        self._loops = 0

    def goes_on(self, name: str) -> bool:
        if name == "LOAD_FAST_AND_CLEAR":
            self._is_begun = True
        elif self._is_begun and name == "FOR_ITER":
            self._loops += 1
        elif self._is_begun and name == "END_FOR":
            self._loops -= 1
            self._is_begun = self._loops > 0
        return self._loops > 0


def _divided(each: dis.Instruction, effect: int) -> Iterator[tuple[str, Any, int]]:
    """Names, values and effects of the one step, or two, that an instruction is."""
    if each.opname == "RETURN_CONST":
        yield "LOAD_CONST", each.argval, 1
        yield "RETURN_VALUE", None, -1
    elif each.opname == "RETURN_VALUE":
        yield each.opname, None, -1
    elif len(slots := _SLOT.findall(each.opname)) == 2:
        for what, variable in zip(slots, each.argval, strict=True):
            yield f"{what}_FAST", variable, 1 if what == "LOAD" else -1
    else:
        yield f"{slots[0]}_FAST" if slots else _SAME_AS.get(each.opname, each.opname), each.argval, effect
