"""KeptSections: the bytes of a snapshot by key group, kept for the next one: keys stay, values are put in their places.

Most of a snapshot is what the last one was: headers, keys, which group a key is of. Fresh memory, and a checksum of all
of it, cost more than the values that are new. It belongs to one snapshot at a time: whoever has it writes, and gives it
back when the bytes have been stored.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import StateHandle
from ..backends.group_parts import HEADER, Offsets
from ..checksum import joined_crc32
from ..keys.word_table import Slots
from .slot_groups import Share

_Bytes: TypeAlias = "npt.NDArray[np.uint8]"

_ALIGNMENT = 64
"""Arrow's: the sections begin at a multiple of it."""


class KeptSections:
    """Of rows in one order, whose columns are of these types as they are stored. Used by one thread at a time."""

    def __init__(
        self, sections: Mapping[int, Any], stored: pa.Schema, keys: int, slots: Slots, shares: Sequence[Share]
    ) -> None:
        """`sections`: the header first, then a record batch for each share, in their order; they are copied. `keys`:
        how many columns come first that never change. `slots`: of each row.
        """
        self.slots, self._stored, self._keys = slots, stored, keys
        lengths = {group: memoryview(part).nbytes for group, part in sections.items()}
        self._memory = _aligned(sum(lengths.values()), lengths[HEADER])
        self._lengths = lengths
        self._parts: dict[int, _Bytes] = {}
        at = 0
        for group, part in sections.items():
            self._parts[group] = self._memory[at : at + lengths[group]]
            self._parts[group][:] = np.frombuffer(part, np.uint8)
            at += lengths[group]
        rows = {group: slots[start:end] for group, start, end in shares}
        self._places = [_Section(self._parts[group], each, stored, keys) for group, each in rows.items()]
        self._header_checksum = zlib.crc32(self._parts[HEADER].data)

    def fits(self, slots: Slots, columns: Sequence[pa.Array]) -> bool:
        """Whether it is of these very rows, and the columns are of the types that it has."""
        return self.slots is slots and [each.type for each in columns] == self._stored.types[self._keys :]

    def put(self, columns: Sequence[pa.Array]) -> None:
        """Let the columns that are not keys be these, by slot; a column may be there several times."""
        values = [each.to_numpy() for each in columns]
        firsts = [next(at for at, each in enumerate(columns) if each is column) for column in columns]
        for section in self._places:
            section.put(values, firsts)

    def handle(self) -> tuple[Offsets, StateHandle]:
        """What `lay_out` returns. The bytes are this memory: a view, until it is used again."""
        checksums = [self._header_checksum, *(section.checksum() for section in self._places)]
        offsets: Offsets = {}
        at = 0
        for (group, length), checksum in zip(self._lengths.items(), checksums, strict=True):
            offsets[group] = (at, length, checksum)
            at += length
        whole = joined_crc32(zip(checksums, self._lengths.values(), strict=True))
        return offsets, StateHandle(None, cast("bytes", self._memory.data), at, whole)


class _Section:
    """One key group's."""

    def __init__(self, part: _Bytes, slots: Slots, stored: pa.Schema, keys: int) -> None:
        batch = pa.ipc.read_record_batch(pa.py_buffer(part), stored)
        start = part.ctypes.data
        self._slots = slots
        self._columns: list[npt.NDArray[Any]] = []
        changes_at = len(part)
        for column in batch.columns[keys:]:
            _, data = column.buffers()
            offset = data.address - start
            dtype = np.dtype(column.type.to_pandas_dtype())
            self._columns.append(part[offset : offset + len(batch) * dtype.itemsize].view(dtype))
            changes_at = min(changes_at, offset)
        self._changing = part[changes_at:]
        self._fixed_checksum = zlib.crc32(part[:changes_at].data)

    def put(self, values: Sequence[npt.NDArray[Any]], firsts: Sequence[int]) -> None:
        for column, (own, first) in enumerate(zip(self._columns, firsts, strict=True)):
            if first < column:
                own[:] = self._columns[first]
            else:
                values[column].take(self._slots, out=own, mode="clip")  # in "raise" NumPy takes by way of a copy

    def checksum(self) -> int:
        return zlib.crc32(self._changing.data, self._fixed_checksum)


def can_be_kept(columns: Sequence[pa.Array]) -> bool:
    """Whether these are numbers without nulls, of whole bytes each."""
    return all(
        each.null_count == 0
        and (pa.types.is_integer(each.type) or pa.types.is_floating(each.type))
        and len(each.buffers()) == 2
        for each in columns
    )


def _aligned(size: int, header: int) -> _Bytes:
    """Memory whose byte behind the header is aligned."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -(memory.ctypes.data + header) % _ALIGNMENT
    return memory[start : start + size]
