"""Which errors are likely to come again, and which may pass by themselves. Decided where the exception still exists.

An error is repeatable when the program raised it or cannot be loaded, or when what the program emitted cannot be keyed
or sent; and so is a mistake of our own code, as a broken invariant. It is not when anything in its chain of causes may
pass: a connection, a timeout, a disk that is full for now. An exception class with an attribute `may_pass` (True or
False) says it for itself, and for what caused it.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Sequence

from ..messages import UnregisteredMessage, UnsupportedValue
from ..state import (
    InvalidKey,
    SnapshotTooLarge,
    StateIncompatible,
    StateNotStorable,
    StorageError,
    UpdateForgotten,
    WrongStateType,
)
from .errors import CannotLoad, ChannelBroken, UnusableRecord, UserCodeError

_OF_THE_PROGRAM = (
    UserCodeError,
    CannotLoad,
    UpdateForgotten,
    UnusableRecord,
    InvalidKey,
    StateNotStorable,
    WrongStateType,
    SnapshotTooLarge,
    UnsupportedValue,
    UnregisteredMessage,
)
_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    StateIncompatible,
    TypeError,
    ValueError,
)
"""Whoever makes them. Not what surroundings have a part in, as MemoryError."""
_PASSING = (ConnectionError, TimeoutError, ChannelBroken, StorageError)

_LASTING_NUMBERS = frozenset(
    {
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ENAMETOOLONG,
    }
)
_LASTING = (
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
    FileExistsError,
    io.UnsupportedOperation,
)

_PASSING_NAMES = ("Connection", "Timeout", "Unavailable", "OperationalError", "RpcError")
"""In the names of error classes that clients of databases and services have of their own; OperationalError is PEP 249's
word for what the programmer has no part in.
"""


def is_repeatable(chain: Sequence[BaseException]) -> bool:
    """Of an error and all that caused it."""
    return any(isinstance(step, _OF_THE_PROGRAM + _MISTAKES) for step in chain) and not _may_pass(chain)


def is_lasting(error: OSError) -> bool:
    """Whether the file system will say the same until somebody changes what lies there."""
    return isinstance(error, _LASTING) or error.errno in _LASTING_NUMBERS


def _may_pass(chain: Sequence[BaseException]) -> bool:
    """The outermost that knows decides: a login that is refused is refused, by whichever kind of error of a client."""
    for error in chain:
        said = getattr(type(error), "may_pass", None)
        if isinstance(said, bool):
            return said
        if _passes(error):
            return True
    return False


def _passes(error: BaseException) -> bool:
    if isinstance(error, _PASSING):
        return True
    if isinstance(error, OSError):
        return not is_lasting(error)
    return any(name in cls.__name__ for cls in type(error).__mro__ for name in _PASSING_NAMES)
