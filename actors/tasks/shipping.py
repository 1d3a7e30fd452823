"""How user code is pickled for its way to the TaskManagers: as cloudpickle does, and each function keeps its file.

From 3.1.3 on, cloudpickle leaves the name of a function's file out, so that its bytes are the same wherever the code
was written. A traceback from a TaskManager, or the place of a slow step, would then show no file and no source line.
An alias, as of `type Rows = list[Row]`, it takes for something that whoever loads it can import.
"""

from __future__ import annotations

import io
import linecache
import sys
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cloudpickle
import pyarrow as pa

from .shipped_annotations import (
    ARE_LATE,
    add_annotations,
    is_annotated_with_what_is_there,
    reduced_reference,
    resolve_annotations,
    with_known_annotations,
)

_RUN_BY_PATH = "<run_path>"
"""What `runpy.run_path` calls a file while it runs, in sys.modules too: nobody can import that, so its code travels as
that of `__main__` does.
"""

_reduced = cloudpickle.Pickler.dispatch_table[types.CodeType]


@dataclass(frozen=True, slots=True)
class CodeOrigins:
    """Where code has come from that was pickled."""

    modules: dict[str, str] = field(default_factory=dict)
    """What is named, and whoever loads it imports; and the files that this process has it from."""
    cells: dict[str, str] = field(default_factory=dict)
    """Source text by the name of a file that there is none of: of a notebook's cells, or typed into Python."""


def pickled(value: Any, origins: CodeOrigins | None = None) -> bytes:
    """`value` in bytes for `cloudpickle.loads`, by a process that has Understudy. Raises what cloudpickle raises."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    if origins is not None:
        origins.modules.update((name, path) for name in sorted(pickler.named) if (path := file_of(name)))
        codes = sorted(pickler.files.items())
        origins.cells.update((name, text) for name, code in codes if (text := _typed_text(name, code)))
    return file.getvalue()


def know_cells(cells: Mapping[str, str]) -> None:
    """Tracebacks of this process show lines of theirs."""
    for name, text in cells.items():
        linecache.cache.setdefault(name, (len(text), None, text.splitlines(keepends=True), name))


def _typed_text(name: str, code: types.CodeType) -> str:
    """What whoever compiled it has kept for tracebacks: without a time, as there is no file. Empty for a file's."""
    entry = linecache.cache.get(name, ())
    if len(entry) == 4 and entry[1] is None:
        return "".join(entry[2])
    of_code = getattr(linecache, "_getlines_from_code", None) if name.startswith(_PROMPT) else None
    return "".join(of_code(code)) if of_code is not None else ""


_PROMPT = "<python-input-"
"""Names of what is typed at Python's own prompt begin so from 3.13 on. It keeps the lines by their code."""


def file_of(module: str) -> str:
    """Where this process has imported it from; empty if it has not, or from no file."""
    return getattr(sys.modules.get(module), "__file__", None) or ""


def _code_in_file(make: Callable[..., types.CodeType], parts: tuple[Any, ...], filename: str) -> types.CodeType:
    return make(*parts).replace(co_filename=filename)


def _reduce_code(code: types.CodeType) -> tuple[Any, ...]:
    make, parts = _reduced(code)
    return _code_in_file, (make, parts, code.co_filename)


def _interval(*parts: int) -> pa.MonthDayNano:
    return pa.MonthDayNano(parts)


def _reduce_interval(interval: pa.MonthDayNano) -> tuple[Any, ...]:
    """Its class is in no module, so it cannot be found by its name."""
    return _interval, tuple(interval)


def _alias(kind: Any, name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    return kind(name, value, type_params=parameters)


def _is_alias(value: Any) -> bool:
    """Python's own from 3.12 on, or that of typing_extensions."""
    kind = type(value)
    return kind.__name__ == "TypeAliasType" and kind.__module__ in ("typing", "typing_extensions")


def _is_imported(alias: Any) -> bool:
    """Whether whoever loads it finds it in its module."""
    module = alias.__module__
    shipped = {"__main__", _RUN_BY_PATH, *cloudpickle.list_registry_pickle_by_value()}
    return module not in shipped and getattr(sys.modules.get(module), alias.__name__, None) is alias


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    dispatch_table: ClassVar[ChainMap[type, Any]] = ChainMap(
        {types.CodeType: _reduce_code, pa.MonthDayNano: _reduce_interval}, cloudpickle.Pickler.dispatch_table
    )

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.named: set[str] = set()
        """Modules that travel by their name, and those of classes and functions that do."""
        self.files: dict[str, types.CodeType] = {}
        """Of code that travels, each with some code of it."""
        self._aliases: set[int] = set()

    def reducer_override(self, obj: Any) -> Any:
        is_run_by_path = isinstance(obj, (type, types.FunctionType)) and obj.__module__ == _RUN_BY_PATH
        if is_run_by_path and (module := sys.modules.get(_RUN_BY_PATH)) is not None:
            cloudpickle.register_pickle_by_value(module)
        if _is_alias(obj) and not _is_imported(obj):
            return self._reduce_alias(obj)
        reduced = self._reduce_late(obj) if ARE_LATE else super().reducer_override(obj)
        if isinstance(obj, type) and reduced is not NotImplemented and len(reduced) > 2:
            resolve_annotations(obj, reduced[2][0])
        if isinstance(obj, types.CodeType):
            self.files.setdefault(obj.co_filename, obj)
        if isinstance(obj, types.ModuleType):
            self.named.add(obj.__name__)
        is_named = reduced is NotImplemented and isinstance(obj, (type, types.FunctionType))
        if is_named and isinstance(obj.__module__, str):  # a decorator may have left None
            self.named.add(obj.__module__)
        return reduced

    def _reduce_late(self, obj: Any) -> Any:
        if isinstance(obj, typing.ForwardRef):
            return reduced_reference(obj)
        try:
            reduced = super().reducer_override(obj)
        except Exception:
            if not isinstance(obj, types.FunctionType) or is_annotated_with_what_is_there(obj):
                raise
            return super().reducer_override(with_known_annotations(obj))
        if isinstance(obj, type) and reduced is not NotImplemented and len(reduced) > 2:
            add_annotations(obj, reduced[2][0])
        return reduced

    def _reduce_alias(self, alias: Any) -> tuple[Any, ...]:
        """One whose value names it is asked for again while it is being written: it stands for anything there. So does
        one that names what is not there, which Python finds out only now.
        """
        value: Any = typing.Any
        if id(alias) not in self._aliases:
            self._aliases.add(id(alias))
            with suppress(NameError):
                value = alias.__value__
        return _alias, (type(alias), alias.__name__, value, alias.__type_params__)
