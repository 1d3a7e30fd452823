"""Who wrote a class or a function: this library, one of the packages that its base classes come from, or the user. For
frames see runtime/library_code.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

PACKAGE: Final = __name__.partition(".")[0]
_BASES: Final = frozenset({PACKAGE, "pykka", "builtins", "typing", "abc", "functools"})


def is_ours(made: type[Any] | FunctionType) -> bool:
    """Whether a class or function is this library's."""
    return package_of(made) == PACKAGE


def is_the_users(cls: type[Any]) -> bool:
    """Whether a class is neither this library's nor one that its classes are derived from."""
    return package_of(cls) not in _BASES


def package_of(made: type[Any] | FunctionType) -> str:
    """The outermost one; empty where a decorator has taken the name of the module away."""
    return str(made.__module__ or "").partition(".")[0]
