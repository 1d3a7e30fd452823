"""Record sizes: whether a record is larger than a frame may be, before it is encoded.

A few values of a record are looked at, and the lengths of its texts, as that is cheap. Encoding finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

import numpy as np

from ...messages import DictRow, Row, serializer_for

_LOOKED_AT = 64
"""Values of one record, at most."""


def are_huge(records: Iterable[Any], max_bytes: int) -> bool:
    """Whether one of them certainly takes more bytes than this."""
    return any(_least_bytes(record) > max_bytes for record in records)


def _least_bytes(record: Any) -> int:
    """The number of bytes that it takes at least, once it is encoded."""
    size, found = 0, [record]
    for value in found:  # it grows meanwhile
        kind = type(value)
        if kind is str or kind is bytes:
            size += len(value)
        elif kind is np.ndarray:
            size += 0 if value.dtype == object else value.nbytes
        elif kind is not int and kind is not float and len(found) < _LOOKED_AT:
            found.extend(islice(_parts(value), _LOOKED_AT))
    return size


def _parts(value: Any) -> Iterable[Any]:
    """What surely travels with it. A serializer may leave out what it likes."""
    kind = type(value)
    if kind is tuple or kind is list or isinstance(value, Row):
        return value  # type: ignore[no-any-return]
    if kind is dict or kind is DictRow:
        return value.values()  # type: ignore[no-any-return]
    if is_dataclass(value) and serializer_for(kind) is None:
        return (getattr(value, each.name, None) for each in fields(value) if each.init)
    return ()
