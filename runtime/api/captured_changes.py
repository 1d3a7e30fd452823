"""Which variables of the user's program a function changes, where it changes a copy of them. Known from its bytecode.

Functions and classes of a script, lambdas and functions within functions go to the TaskManagers with copies of the
variables that they name, and of the defaults of their parameters. `seen.append(record)` there is lost without a word:
the program's own list stays empty, and no checkpoint holds the copy. Whoever submits the job is warned, once per
function.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import deque
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeGuard
from weakref import WeakSet

from ...actors.operators.operator import Operator
from ...messages.attributes import attributes_of
from ...messages.code_steps import Step, codes_of, steps
from ...messages.whose_code import is_ours, is_the_users

log = logging.getLogger(__name__)

_CONTAINERS = (MutableMapping, MutableSequence, MutableSet, deque)
_LASTING = (*_CONTAINERS, Iterator)
"""As the default of a parameter it is the same object in each call."""
_GROWING = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})
_CHANGING = _GROWING | {"clear", "discard", "pop", "popitem", "popleft", "remove", "reverse", "sort"}
_LOADS = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST")
_ASIDE = ("RESUME", "NOP", "JUMP", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES", "NOT_TAKEN")
"""They leave the stack as it is."""
_GOES_NOT_ON = ("RETURN", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")
"""Only a jump reaches the step behind one of these."""
_ITEM_CHANGES = {"STORE_SUBSCR": 2, "DELETE_SUBSCR": 2, "STORE_SLICE": 3}
"""With the place of the container on the stack, from the top."""


class Change(NamedTuple):
    """`what`: as "the list 'seen'"."""

    function: str
    what: str
    file: str
    line: int


class _Variable(NamedTuple):
    name: str
    value: Any
    is_assigned: bool = False
    is_default: bool = False

    @property
    def told(self) -> str:
        kind = "variable" if self.is_assigned else type(self.value).__name__
        return f"the {'default ' * self.is_default}{kind} {self.name!r}"

    def of(self, inside: str, elsewhere: str) -> _Variable:
        """By the name that its object, called `inside` in a method, has elsewhere."""
        holder, dot, rest = self.name.partition(".")
        return self._replace(name=f"{elsewhere}{dot}{rest}") if holder == inside else self


_looked_at: WeakSet[CodeType] = WeakSet()
"""A program that is submitted again, or simulated, is not warned of again."""


def warn_of_captured_changes(name: str, operator: Operator) -> None:
    """A line in the log for each. `name`: the operator's."""
    found = [(function, None) for function in functions_of(operator) if is_copied(function)]
    for function, itself in (*found, *methods_of_objects(operator)):
        if function.__code__ in _looked_at:
            continue
        _looked_at.add(function.__code__)
        for change in changes(function, itself):
            log.warning(
                "operator %r: %s changes %s of your program (%s:%d), of which each TaskManager has a copy: yours stays "
                "as it is, and no checkpoint holds the others. Emit what you want to see, as with collect(); keep what "
                "later records need in the state of a KeyedOperator",
                name,
                *change,
            )


def changes_of(operator: Operator) -> Iterator[Change]:
    """Of all functions of the user's that it has, also of those that every process imports for itself."""
    for function in functions_of(operator):
        if not is_ours(function):
            yield from changes(function)
    for function, itself in methods_of_objects(operator):
        yield from changes(function, itself)


def changes(function: FunctionType, itself: object = None, its_name: str = "") -> Iterator[Change]:
    """Of variables that are not its own, in the order of its code; what Python has compiled twice counts once.
    `itself`: of a method, the object that each call gets, and how it is called elsewhere; if not given, as in the
    method.
    """
    return iter(dict.fromkeys(_changes(function, itself, its_name)))


def _changes(function: FunctionType, itself: object, its_name: str) -> Iterator[Change]:
    named = function.__name__ if function.__name__ != "<lambda>" else "its lambda"
    captured = captured_by(function)
    arguments = _lasting_arguments(function, itself)
    for code in codes_of(function.__code__):
        lasting = arguments if code is function.__code__ else {}
        for line, variable in _changed(code, {**captured, "FAST": lasting}):
            if its_name and arguments:
                variable = variable.of(function.__code__.co_varnames[0], its_name)
            yield Change(named, variable.told, code.co_filename, line)


def functions_of(operator: Operator) -> Iterator[FunctionType]:
    """Those that it was given, and the methods of the user's classes."""
    for value in attributes_of(operator).values():
        while isinstance(value, functools.partial | MethodType):
            value = value.func if isinstance(value, functools.partial) else value.__func__
        if isinstance(value, FunctionType):
            yield value
    for cls in filter(is_the_users, type(operator).__mro__):
        yield from filter(inspect.isfunction, attributes_of(cls).values())


def methods_of_objects(operator: Operator) -> Iterator[tuple[FunctionType, object]]:
    """Methods of objects of the user's, and objects that are called, where a function is wanted.
    The objects travel with the job, and are the operator's copy wherever their class comes from.
    """
    for value in attributes_of(operator).values() if is_ours(type(operator)) else ():
        while isinstance(value, functools.partial):
            value = value.func
        if isinstance(value, MethodType):
            method, itself = value.__func__, value.__self__
        else:
            method, itself = vars(type(value)).get("__call__"), value
        if not isinstance(method, FunctionType) or isinstance(itself, type | ModuleType | FunctionType):
            continue
        if not is_ours(type(itself)) and "site-packages" not in method.__code__.co_filename:
            yield method, itself


def _lasting_arguments(function: FunctionType, itself: object) -> dict[str, Any]:
    """What a function has as the same object in each call: its own object, and defaults that can be changed."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    lasting = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    lasting |= function.__kwdefaults__ or {}
    lasting = {name: value for name, value in lasting.items() if isinstance(value, _LASTING)}
    if itself is not None and names:
        lasting[names[0]] = itself
    stored = {each.value for each in steps(code) if each.name == "STORE_FAST"}
    return {name: value for name, value in lasting.items() if name not in stored}


def is_copied(function: FunctionType) -> bool:
    """Whether it is shipped by value: others are imported where they run, and there a module may keep what it likes."""
    return function.__module__ == "__main__" or "<" in function.__qualname__


def captured_by(function: FunctionType) -> dict[str, dict[str, Any]]:
    """By the end of the instructions that load and store them."""
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it has no value yet
            cells[name] = cell.cell_contents
    return {"GLOBAL": function.__globals__, "DEREF": cells}


def _changed(code: CodeType, captured: dict[str, dict[str, Any]]) -> Iterator[tuple[int, _Variable]]:
    """With the line. Follows on the stack which value is that of a captured variable; None are the others."""
    stack: list[_Variable | None] | None = []
    jumped: dict[int, list[_Variable | None]] = {}
    called = ""
    for each in steps(code):
        stack = _joined(stack, jumped.get(each.offset)) if each.is_jump_target else stack or []
        line, name, top = each.line, each.name, stack[-1] if stack else None
        place = _ITEM_CHANGES.get(name, 0)
        container = stack[-place] if 0 < place <= len(stack) else None
        if name in ("STORE_GLOBAL", "STORE_DEREF") and each.value in captured[name[6:]]:
            yield line, _Variable(each.value, None, is_assigned=True)
        elif container and isinstance(container.value, _CONTAINERS):
            yield line, container
        elif top and _changes_top(name, each.value, top.value):
            yield line, top
        if each.jumps_to is not None:
            jumped[each.jumps_to] = _moved(stack, each.jump_effect)
        _step(stack, each, captured)
        if called == "next" and name in _LOADS and stack[-1] and isinstance(stack[-1].value, Iterator):
            yield line, stack[-1]
        if name not in (*_ASIDE, "PUSH_NULL"):
            called = each.value if name == "LOAD_GLOBAL" else ""
        if name.startswith(_GOES_NOT_ON):
            stack = None


def _joined(before: list[_Variable | None] | None, jumped: list[_Variable | None] | None) -> list[_Variable | None]:
    """The stack at the target of a jump: what either way has left there, from the top. None: there is no such way."""
    if before is None or jumped is None:
        return before or jumped or []
    depth = min(len(before), len(jumped))
    pairs = zip(before[len(before) - depth :], jumped[len(jumped) - depth :], strict=True)
    return [one or other for one, other in pairs]


def _moved(stack: list[_Variable | None], effect: int) -> list[_Variable | None]:
    return [*stack, *[None] * effect] if effect > 0 else stack[: len(stack) + effect]


def _changes_top(name: str, argument: Any, value: Any) -> bool:
    if name == "STORE_ATTR":
        return not isinstance(value, ModuleType | type)
    return name == "LOAD_ATTR" and argument in _CHANGING and isinstance(value, _CONTAINERS)


def _is_attribute_of(held: _Variable | None, name: Any) -> TypeGuard[_Variable]:
    """A container that an object holds, which is the same in each call."""
    if held is None or isinstance(held.value, ModuleType | type | FunctionType):
        return False
    return isinstance(getattr(held.value, "__dict__", {}).get(name), _CONTAINERS)


def _step(stack: list[_Variable | None], each: Step, captured: dict[str, dict[str, Any]]) -> None:
    name, argument, effect = each.name, each.arg, each.effect
    if name in _LOADS and each.value in captured[name[5:]]:
        stack += [None] * (effect - 1)
        value = captured[name[5:]][each.value]
        stack.append(_Variable(each.value, value, is_default=name == "LOAD_FAST" and isinstance(value, _LASTING)))
    elif name == "LOAD_ATTR" and effect == 0 and stack and _is_attribute_of(stack[-1], each.value):
        stack[-1] = _Variable(f"{stack[-1].name}.{each.value}", vars(stack[-1].value)[each.value])
    elif name == "COPY" and len(stack) >= argument:
        stack.append(stack[-argument])
    elif name == "SWAP" and len(stack) >= argument:
        stack[-1], stack[-argument] = stack[-argument], stack[-1]
    elif effect > 0:
        stack += [None] * effect
    else:
        del stack[len(stack) + effect :]
        if stack and not name.startswith(("POP", "STORE", "DELETE", *_ASIDE)):
            stack[-1] = None
