"""UnsteadyCalls: where a user's functions ask for what is another one in each run: the time, random numbers, ids; or in
each process: the hash of a text.

Known from their bytecode, so a call through a variable of a function or an attribute is not seen.
"""

from __future__ import annotations

import builtins
import datetime
import os
import pathlib
import random
import secrets
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ....actors.operators.operator import Operator
from ....messages.attributes import attributes_of
from ....messages.code_steps import codes_of, steps
from .reached_functions import functions_reached_by

_CALLS: dict[Callable[..., Any], str] = {
    getattr(module, name): name if module is builtins else f"{module.__name__}.{name}"
    for module, names in (
        (time, "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns"),
        (uuid, "uuid1 uuid4"),
        (os, "urandom getpid"),
        (builtins, "open hash"),
        (pathlib, "Path"),
        (sqlite3, "connect"),
        (secrets, "token_bytes token_hex token_urlsafe randbelow choice"),
    )
    for name in names.split()
}
_GENERATORS = {id(random.random.__self__): "random", id(np.random.random.__self__): "numpy.random"}  # type: ignore[attr-defined]
"""Those that a module's functions draw from."""
_WRITES = frozenset({"write_text", "write_bytes"})
"""Methods of a path, whatever holds it."""
FILES = frozenset({"open", "pathlib.Path", "sqlite3.connect", *(f"Path.{name}" for name in _WRITES)})
"""What is not another one in each run, but what the run before has left there."""
HASH = "hash"
"""Of numbers it is the same in each process: no fault, as far as the code says."""
_NOW = frozenset({"now", "today", "utcnow"})
_OF_FILES = (
    ": such a file outlives failures and earlier runs, and no restore takes back what is in it. Keep what later "
    "records need in state, and write files with a FileSink"
)
_OF_HASHES = (
    ", and hash() of str or bytes differs between processes: state stored under it is not found after a restart. Use "
    "zlib.crc32(text.encode())"
)
_OF_TIMES = (
    ", which gives something else in each run. Take the time from the record, or in an operator from "
    "self.context.clock.wall_ms(): timers of processing time go by that clock, which is virtual in tests"
)


class UnsteadyCall(NamedTuple):
    """`asks`: as "time.time"."""

    function: str
    asks: str
    file: str
    line: int

    @property
    def told(self) -> str:
        """With what to do."""
        where = f" ({self.file}:{self.line})" if self.file else ""
        return f"{self.function} calls {self.asks}{where}{self._what_of_it}"

    @property
    def _what_of_it(self) -> str:
        if self.asks in FILES:
            return _OF_FILES
        if self.asks == HASH:
            return _OF_HASHES
        owner, _, name = self.asks.rpartition(".")
        return _OF_TIMES if owner == "time" or name in _NOW else ", which gives something else in each run"


def unsteady_calls(operator: Operator) -> Iterator[UnsteadyCall]:
    """Of all functions of the user's that it has, and that these call. An attribute that is such a function itself has
    no line.
    """
    for name, value in attributes_of(operator).items():
        if not isinstance(value, FunctionType) and (asks := _asks(value)):
            yield UnsteadyCall(f"attribute {name!r} of {type(operator).__name__}", asks, "", 0)
    for function in functions_reached_by(operator):
        if function.__name__ == "__hash__":  # a record may be a key of a dict that lives no longer than its process
            continue
        named = function.__name__ if function.__name__ != "<lambda>" else "its lambda"
        for code in codes_of(function.__code__):
            for line, asks in _found(code, {**attributes_of(builtins), **function.__globals__}):
                yield UnsteadyCall(named, asks, code.co_filename, line)


def _found(code: CodeType, variables: dict[str, Any]) -> Iterator[tuple[int, str]]:
    value = None
    for each in steps(code):
        if each.name == "LOAD_GLOBAL":
            value = variables.get(each.value)
        elif each.name == "LOAD_ATTR" and isinstance(value, ModuleType | type):
            value = getattr(value, each.value, None)
        else:
            value = None
        if asks := _asks(value):
            yield each.line, asks
        elif each.name in ("LOAD_ATTR", "LOAD_METHOD") and each.value in _WRITES:
            yield each.line, f"Path.{each.value}"


def _asks(value: Any) -> str:
    """The name of a function whose results are others in each run; empty for anything else."""
    owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if not callable(value) or not isinstance(name, str):
        return ""
    if id(owner) in _GENERATORS:
        return f"{_GENERATORS[id(owner)]}.{name}"
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in _NOW:
        return f"{owner.__name__}.{name}"
    return next((told for call, told in _CALLS.items() if call is value), "")
