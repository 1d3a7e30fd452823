"""NumPy arrays as plain data: dtype, shape and bytes in C order.

Carried are booleans, integers, floats of up to 64 bits, complex numbers of up to 128, fixed-length texts and bytes,
datetime64 and timedelta64, of any byte order. Not carried are objects, structured dtypes, floats of more than 64 bits
(they differ from machine to machine), and subclasses such as masked arrays, which would lose what they add.

A reader trusts nothing: it allocates what the bytes hold and no more.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from .errors import MalformedMessage, UnsupportedValue
from .shown import one_of_kind

_KINDS = "biufcSUMm"
_MAX_ITEM_BYTES = {"f": 8, "c": 16}
_MAX_DIMENSIONS = 32
_DTYPE = re.compile(r"[<>|=][biufcSUMm]\d{1,9}(\[\d{0,9}[A-Za-z]{1,2}\])?", re.ASCII)
_MAX_CODE_POINT = 0x10FFFF


def array_parts(array: np.ndarray[Any, Any]) -> list[Any]:
    """What `make_array` takes. Raises UnsupportedValue, naming the dtype."""
    dtype = array.dtype
    if not is_carried(dtype):
        raise UnsupportedValue(
            f"a NumPy array of dtype {dtype} cannot be sent or stored: its items must be booleans, integers, floats of "
            "up to 64 bits, complex numbers of up to 128, fixed-length texts or bytes, or times; "
            "convert it with astype() or tolist()"
        )
    return [dtype.str, list(array.shape), array.tobytes()]


def make_array(content: list[Any]) -> np.ndarray[Any, Any]:
    """A writable array in C order. Raises MalformedMessage."""
    text, shape, data = content
    if not (type(text) is str and type(shape) is list and type(data) is bytes):
        raise MalformedMessage("wanted a dtype, a shape and bytes")
    dtype = _dtype_of(text)
    if len(shape) > _MAX_DIMENSIONS or not all(type(length) is int and length >= 0 for length in shape):
        raise MalformedMessage(f"{shape!r:.80} is no shape of an array")
    if prod(shape) * dtype.itemsize != len(data):
        raise MalformedMessage(f"{len(data)} bytes do not fill an array of {text} with shape {shape!r:.80}")
    _check_items(np.frombuffer(data, np.uint8), dtype)
    return np.ndarray(tuple(shape), dtype, bytearray(data))


def is_carried(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this dtype travel."""
    kind = dtype.kind
    return kind in _KINDS and 0 < dtype.itemsize <= _MAX_ITEM_BYTES.get(kind, dtype.itemsize)


def refuse_subclass(array: np.ndarray[Any, Any]) -> None:
    raise UnsupportedValue(
        f"{one_of_kind(type(array))} cannot be sent or stored: a subclass of numpy.ndarray would lose what it adds; "
        "convert it with numpy.asarray()"
    )


def _dtype_of(text: str) -> np.dtype[Any]:
    if not _DTYPE.fullmatch(text):
        raise MalformedMessage(f"{text!r:.40} is no dtype of an array that travels")
    dtype = np.dtype(text)
    if dtype.str != text or not is_carried(dtype):
        raise MalformedMessage(f"{text!r:.40} is no dtype of an array that travels")
    return dtype


def _check_items(data: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Refuse bytes that are no items: NumPy takes any, and fails later, or not at all."""
    if not len(data):
        return
    if dtype.kind == "b" and data.max() > 1:
        raise MalformedMessage("an array of booleans holds a byte that is neither 0 nor 1")
    if dtype.kind == "U" and data.view(np.dtype("u4").newbyteorder(dtype.byteorder)).max() > _MAX_CODE_POINT:
        raise MalformedMessage("an array of texts holds what is no character")
