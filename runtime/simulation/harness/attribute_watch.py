"""AttributeWatch: what operators hold outside of declared state, and what of it a restore has lost.

It tells the likely cause when an operator behaves otherwise after a restore: an attribute that changed while records
were processed, and is as at the beginning again afterwards. Looks at instance attributes, at the variables of functions
that were given to the operator, and at attributes of the user's own classes. Values are compared by what they hold;
attributes that cannot be pickled are left out.
"""

from __future__ import annotations

import random
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import cloudpickle
import numpy as np

from ....actors.operators.of_call import OfCall
from ....actors.operators.operator import Operator
from ....actors.windows.window_function import PlainWindowFunction, ProcessWindowFunction
from ....messages.attributes import attributes_of
from ....messages.whose_code import is_ours, is_the_users
from ....state import StateDeclaration, declared_states

_FRAMEWORK = frozenset(
    {
        "context",
        "key",
        "timestamp",
        "timestamps",
        "split_watermarks",
        "time_column",
        "timers",
        "watermark",
        "_backend",
        "_batch_process",
        "_calls",
        "_input_index",
        "_input_schema",
        "_kept_kinds",
        "_loop",
        "_overdue",
        "_records_before",
        "_selectors",
        "_taken",
        "_state",
        "_state_thread",
        "_schema",
        "_file",
        "_writer",
    }
)
"""Attributes that tasks and our own operators set, and find again by other means."""

_NO_DATA = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    classmethod,
    staticmethod,
    property,
    StateDeclaration,
    OfCall,
    type,
)
_SHOWN = 60
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")

Held = Mapping[str, bytes]
"""The attributes by description, pickled: a copy that later changes do not reach."""


def what_is_held(operators: Sequence[Operator]) -> Held:
    """Everything outside of declared state that an attempt could lose."""
    found: dict[str, Any] = {}
    for operator in operators:
        kind, declared = type(operator).__name__, declared_states(type(operator))
        for name, value in attributes_of(operator).items():
            is_method = callable(getattr(type(operator), name, None))  # somebody stands before it
            if name.removeprefix("_own_") not in {*declared, *_FRAMEWORK} and not is_method:
                found |= _described(f"attribute {name!r} of {kind}", value)
        for cls in _own_classes(operator):
            found |= {f"class attribute {name!r} of {cls.__name__}": value for name, value in _data_of(cls).items()}
    pickled = ((description, _pickled(value)) for description, value in found.items())
    return {description: data for description, data in pickled if data is not None}


def what_was_lost(before: Held, at_barrier: Held, restored: Held) -> list[str]:
    """One line for each attribute that changed up to the barrier and differs after the restore, with its values."""
    return [
        f"{description}: {_told(before.get(description), held, restored.get(description))}"
        for description, held in at_barrier.items()
        if not same_data(before.get(description), held) and not same_data(held, restored.get(description))
    ]


def same_data(one: bytes | None, other: bytes | None) -> bool:
    """Whether two pickled values are the same: equal by their own account, or byte by byte."""
    if one is None or other is None or one == other:
        return one is other or one == other
    try:
        return bool(cloudpickle.loads(one) == cloudpickle.loads(other))
    except Exception:  # noqa: BLE001 - whatever a user's class does when it is compared, they are not known to be equal
        return False


@contextmanager
def classes_as_in_a_new_process(operators: Sequence[Operator]) -> Iterator[Callable[[], None]]:
    """Gives a function that sets the attributes of the user's classes back to what they are now, as a process that is
    started again finds them. Called on leaving, too. What has not changed stays the same object.
    """
    first = {cls: _data_of(cls) for operator in operators for cls in _own_classes(operator)}
    copies = {(cls, name): _pickled(value) for cls, held in first.items() for name, value in held.items()}

    def reset() -> None:
        for cls, held in first.items():
            for name in _data_of(cls).keys() - held.keys():
                delattr(cls, name)
        for (cls, name), data in copies.items():
            if data is not None and not same_data(data, _pickled(vars(cls).get(name))):
                setattr(cls, name, cloudpickle.loads(data))

    try:
        yield reset
    finally:
        reset()


def _described(where: str, value: Any) -> dict[str, Any]:
    """The value, or, of a function, the variables that it takes along, and of a window function, or another object of
    the user's that can be called, its attributes.
    """
    if isinstance(value, PlainWindowFunction):
        return _described(where, value._function)
    if isinstance(value, ProcessWindowFunction):
        kind, not_looked_at = type(value).__name__, {*declared_states(type(value)), "operator"}
        attributes = attributes_of(value).items() if not is_ours(type(value)) else ()
        return {f"the attribute {name!r} of {kind}": held for name, held in attributes if name not in not_looked_at}
    if not isinstance(value, types.FunctionType):
        called = value.__self__ if isinstance(value, types.MethodType) else value if callable(value) else None
        cls = type(called)
        if hasattr(called, "__dict__") and is_the_users(cls):
            return {f"the attribute {name!r} of {cls.__name__}": held for name, held in attributes_of(called).items()}
        return {where: value}
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    return {f"variable {name!r} of the function {value.__name__}": _content(cell) for name, cell in cells}


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty as yet
        return None


def _own_classes(operator: Operator) -> list[type]:
    """The user's, not ours and not Python's."""
    return list(filter(is_the_users, type(operator).__mro__))


def _data_of(cls: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in attributes_of(cls).items()
        if not (name.startswith("__") and name.endswith("__"))
        and name != "_abc_impl"
        and not isinstance(value, _NO_DATA)
    }


def _pickled(value: Any) -> bytes | None:
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception:  # noqa: BLE001 - an object may raise anything when it is pickled
        return None
    return data


def is_generator(data: bytes | None) -> bool:
    """Whether it is one of random numbers."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    return data is not None and isinstance(cloudpickle.loads(data), kinds)


def _told(before: bytes | None, held: bytes, restored: bytes | None) -> str:
    """The values, where their texts tell them apart; an address does not."""
    texts = list(map(_shown, (before, held, restored)))
    if len({_ADDRESS.sub("", text) for text in texts}) == 1:
        kind = type(cloudpickle.loads(held)).__name__
        return f"a {kind}, which had changed at the barrier, and holds something else after the restore"
    return f"{texts[0]} when it was opened, {texts[1]} at the barrier, {texts[2]} after the restore"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "nothing"
    text = repr(cloudpickle.loads(data))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
