"""Lazy names: a module offers them, others have them, and they are loaded on first use.

So importing what offers many names costs next to nothing, as the face does, and the package of connectors. Meanwhile
nobody looks for garbage: an import makes none, and to look through all that it brings takes a tenth of its time.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def home_of_each(homes: Mapping[str, str]) -> dict[str, str]:
    """Name -> the module that has it, of module -> its names with spaces between."""
    return {name: home for home, names in homes.items() for name in names.split()}


def _nothing(name: str) -> str:
    return ""


def lazy_names(
    module: str, package: str, home_of: Mapping[str, str], *own: str, instead_of: Callable[[str], str] = _nothing
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that offers these names, and `own`, which it has itself. Homes are
    relative to the package. `instead_of`: what to write in place of a name that others have; empty for all the rest.
    """
    shown = sorted({*home_of, *own})

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            if instead := instead_of(name):  # no AttributeError, of which `from module import name` drops the text
                raise ImportError(f"{module} has no {name}: {instead}", name=name)
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with no_collections():
            value = getattr(import_module(f".{home}", package), name)
        setattr(sys.modules[module], name, value)  # it is not asked for again
        return value

    return load, lambda: shown


@contextmanager
def no_collections() -> Iterator[None]:
    """Of garbage. Where somebody has turned them off they stay off."""
    were_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if were_on:
            gc.enable()
