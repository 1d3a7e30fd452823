"""Times of day in nanoseconds: Arrow makes Python's of them, which go to microseconds, and cuts off the rest."""

from __future__ import annotations

import pyarrow as pa

from ..errors import RecordMismatch


def refuse_cut_times(array: pa.Array) -> None:
    """Raises RecordMismatch if a time of day in it, or in what it holds, has nanoseconds."""
    kind = array.type
    if not _has_fine_times(kind):
        return
    if pa.types.is_struct(kind):
        for child in array.flatten():
            refuse_cut_times(child)
    elif pa.types.is_time64(kind):
        _refuse_cut(array)
    elif pa.types.is_map(kind):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()  # a slice still has the whole column's
        for child in (array.keys, array.items):
            refuse_cut_times(child[start:end])
    else:
        refuse_cut_times(array.flatten())


def _has_fine_times(kind: pa.DataType) -> bool:
    if pa.types.is_time64(kind):
        return bool(kind.unit == "ns")
    if pa.types.is_struct(kind) or pa.types.is_map(kind) or _is_list(kind):
        return any(_has_fine_times(kind.field(place).type) for place in range(kind.num_fields))
    return False


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _refuse_cut(array: pa.Array) -> None:
    try:
        array.cast(pa.time64("us"))
    except pa.ArrowInvalid as error:
        raise RecordMismatch(
            f"a time of day has nanoseconds, and Python's times go to microseconds ({error}): cast its column to "
            'pa.time64("us"), with safe=False to cut them off'
        ) from error
