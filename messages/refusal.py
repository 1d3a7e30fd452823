"""Refusals: where in a value stands what plain data does not carry, what is there, and what to do about it.

Packing stops at the first such thing, deep in C code, without a word of where it is. So once packing has failed, the
value is gone through again, step by step and without recursion: it may be nested deeper than any stack, or contain
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any

from .errors import MessageError
from .pandas_times import kind_of_pandas
from .record_shape import shape_of
from .record_types import is_record, record_parts
from .registry import is_message
from .row import Row
from .serializers import serializer_for
from .shown import one_of_kind, shown
from .whose_code import is_ours

ALLOWED = (
    "None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, datetime, date, time, timedelta, "
    "Decimal, Fraction, UUID, NumPy arrays and scalars, enums, named tuples, dataclasses, attrs classes, Pydantic "
    "models"
)
"""What plain data carries, as error texts say it."""

ADVICE = "make a class of your own a dataclass, and give another one a serializer with understudy.register_serializer"

_REMEDIES: dict[type, str] = {
    CoroutineType: "write `await` before the call that made it",
    GeneratorType: "make a list of it, with list(...)",
    FunctionType: "is a call meant? Write brackets behind it",
    MethodType: "is a call meant? Write brackets behind it",
    BuiltinFunctionType: "is a call meant? Write brackets behind it",
}
"""What was most likely meant by a value of a type that nobody would send."""
_OF_ITS_PROCESS = frozenset(
    [
        "_thread.lock",
        "_thread.RLock",
        "threading.Condition",
        "threading.Event",
        "threading.Semaphore",
        "threading.Thread",
        "_io._IOBase",
        "_socket.socket",
        "ssl.SSLContext",
        "sqlite3.Connection",
        "sqlite3.Cursor",
        "subprocess.Popen",
        "queue.Queue",
        "_queue.SimpleQueue",
        "concurrent.futures._base.Executor",
        "requests.sessions.Session",
        "httpx._client.BaseClient",
        "psycopg.BaseConnection",
        "_contextvars.Context",
    ]
)
"""Types by their names, as few programs import them all."""
_IN_OPEN = (
    "it belongs to its process. Make it in the operator's open(), which is called again after each restore, and keep "
    "it in an attribute; keep in state what it is made of, as a path or an address"
)
_FINER = "it has nanoseconds, and Python's go to microseconds: cast its column to"
_REMEDIES_OF_PANDAS = {"Timestamp": f'{_FINER} pa.timestamp("us")', "Timedelta": f'{_FINER} pa.duration("us")'}

MAX_NESTED = 32
"""Tuples, sets and records inside one another; each level takes 40 kB of the reader's C stack."""

MAX_LISTS = 500
"""Lists and dicts inside one another, without a tuple, set or record between them; msgpack takes eleven more."""

_MAX_VISITED = 100_000
_SHOWN_STEPS = 8
_SCALARS = frozenset({type(None), bool, int, float, str, bytes})


@dataclass(frozen=True, slots=True)
class _Place:
    """One value on the way into a record, and how it was reached."""

    value: Any
    step: str
    parent: _Place | None
    lists: int
    nested: int

    @property
    def path(self) -> str:
        steps = [place.step for place in self.line()][::-1]
        if len(steps) > _SHOWN_STEPS:
            steps = [*steps[: _SHOWN_STEPS // 2], " ... ", *steps[-2:]]
        return "".join(steps)

    def line(self) -> Iterator[_Place]:
        """This place and those around it."""
        place: _Place | None = self
        while place is not None:
            yield place
            place = place.parent

    def inside(self, value: Any, step: str, *, is_list: bool) -> _Place:
        lists, nested = (self.lists + 1, self.nested) if is_list else (0, self.nested + 1)
        return _Place(value, step, self, lists, nested)


def not_carried(value: Any) -> str:
    """The text for a value of a type that does not travel."""
    if is_ours(type(value)):
        return f"{value!r:.120} is an object of this library, and no record: emit or store what you need of it"
    refused = f"{one_of_kind(type(value))} cannot be sent or stored: {shown(value)}"
    remedy = next((told for kind, told in _REMEDIES.items() if isinstance(value, kind)), None)
    if any(f"{kind.__module__}.{kind.__qualname__}" in _OF_ITS_PROCESS for kind in type(value).__mro__):
        remedy = _IN_OPEN
    if remedy := remedy or _REMEDIES_OF_PANDAS.get(kind_of_pandas(value) or ""):
        return f"{refused}: {remedy}"
    return f"{refused}: {ADVICE}; allowed are {ALLOWED}"


def where_refused(value: Any, pack: Callable[[Any], object]) -> str | None:
    """Where the first thing stands that cannot travel, and why; None if none is found among the first 100,000 values.

    `pack` packs one value and raises UnsupportedValue.
    """
    waiting = [_Place(value, "", None, 0, 0)]
    for _ in range(_MAX_VISITED):
        if not waiting:
            return None
        place = waiting.pop()
        if type(place.value) in _SCALARS:
            continue
        place, why = _too_deep(place) or (place, _refusal_of(place.value, pack))
        if why is not None:
            return f"at {place.path}: {why}" if place.path else why
        waiting += reversed(list(_parts_of(place)))
    return None


def _refusal_of(value: Any, pack: Callable[[Any], object]) -> str | None:
    """Why a value cannot travel, whatever is inside it."""
    try:
        if _is_opaque(value):
            pack(value)
        elif not isinstance(value, Row) and is_record(value):
            record_parts(value)
    except MessageError as error:
        return str(error)
    return None


def _too_deep(place: _Place) -> tuple[_Place, str] | None:
    """Where a value contains itself, or is nested too deep."""
    if place.nested <= MAX_NESTED and place.lists <= MAX_LISTS:
        return None
    seen: set[int] = set()
    for outer in reversed(list(place.line())):
        if id(outer.value) in seen:
            return outer, f"{one_of_kind(type(outer.value))} contains itself, which cannot be sent or stored"
        seen.add(id(outer.value))
    if place.nested > MAX_NESTED:
        return place, f"tuples, sets or records are nested deeper than {MAX_NESTED}"
    return place, f"lists or dicts are nested deeper than {MAX_LISTS}"


def _is_opaque(value: Any) -> bool:
    """Whether a value is packed as a whole, as far as is of interest here."""
    kind = type(value)
    if kind in (list, tuple, dict, set, frozenset):
        return False
    if is_message(kind) or serializer_for(kind) is not None:
        return True
    return not (isinstance(value, list | tuple | dict | set | frozenset) or shape_of(kind) is not None)


def _parts_of(place: _Place) -> Iterator[_Place]:
    value = place.value
    if _is_opaque(value):
        return
    shape = shape_of(type(value))
    if isinstance(value, dict):
        for key, item in value.items():
            yield place.inside(key, f" key {shown(key, 40)}", is_list=True)
            yield place.inside(item, f"[{shown(key, 40)}]", is_list=True)
    elif shape is not None and not isinstance(value, Row):
        for name, item in shape.values(value).items():
            yield place.inside(item, f".{name}", is_list=False)
        for item in (shape.beside and shape.beside(value)) or ():
            yield place.inside(item, " extra or private values ", is_list=False)
    else:
        names = value._columns if isinstance(value, Row) else ()
        for index, item in enumerate(value):
            step = f".{names[index]}" if names else f"[{index}]"
            if isinstance(value, set | frozenset):
                step = f" item {shown(item, 40)}"
            yield place.inside(item, step, is_list=isinstance(value, list))
