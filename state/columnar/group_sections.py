"""Arrow rows by key group as one run of bytes: a header, then for each key group that has rows, a record batch message.

The header is plain data, at the pseudo key group HEADER of the handle's offsets. Integers stand in as few bytes as will
do; the header says the schema they are stored in, and the one they are read back into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...messages import KeyedStateHandle, StateHandle, pack_plain, unpack_plain
from ..backends.group_parts import HEADER, Offsets, Part, lay_out
from ..columns.column_values import widened
from ..keys.key_groups import KeyGroupRange
from .slot_groups import Share

FORMAT_NAME: Final = "columnar"
"""What a handle says of the format."""

_READ_AT_A_TIME = 1 << 17
"""Rows of a snapshot."""


def write_sections(
    owned: KeyGroupRange, header: dict[str, Any], schema: pa.Schema, stored: pa.RecordBatch, shares: Sequence[Share]
) -> KeyedStateHandle:
    """`stored`: the rows in the order of the shares, narrowed from the schema."""
    return sections_handle(owned, lay_out(sections_of(header, schema, stored, shares)))


def sections_of(
    header: dict[str, Any], schema: pa.Schema, stored: pa.RecordBatch, shares: Sequence[Share]
) -> dict[int, Any]:
    """The bytes of the header and of each key group, in their order."""
    schemas = {"schema": schema.serialize().to_pybytes(), "stored": stored.schema.serialize().to_pybytes()}
    sections: dict[int, Any] = {HEADER: pack_plain(header | schemas)}
    for group, start, end in shares:
        sections[group] = stored.slice(start, end - start).serialize()
    return sections


def sections_handle(owned: KeyGroupRange, laid_out: tuple[Offsets, StateHandle]) -> KeyedStateHandle:
    """Of sections that lie one behind the other."""
    return KeyedStateHandle(owned.first, owned.last, *laid_out, FORMAT_NAME)


def read_header(data: bytes, handle: KeyedStateHandle) -> dict[str, Any]:
    """Raises MalformedMessage or ValueError."""
    header = unpack_plain(section_of(data, handle, HEADER).to_pybytes())
    if not isinstance(header, dict):
        raise ValueError(f"wanted a header, found {header!r:.60}")
    return header


def schema_of(header: Mapping[str, Any]) -> pa.Schema:
    """The schema of the rows. Raises an ArrowInvalid, which is a ValueError, or a LookupError."""
    return pa.ipc.read_schema(pa.py_buffer(header["schema"]))


def _stored_schema_of(header: Mapping[str, Any]) -> pa.Schema:
    """That of the messages: the first ones were not narrowed."""
    return pa.ipc.read_schema(pa.py_buffer(header["stored" if "stored" in header else "schema"]))


def rows_of_section(header: Mapping[str, Any], data: pa.Buffer) -> pa.RecordBatch:
    """The rows of one key group. Raises ValueError, LookupError or OSError for bytes that hold something else."""
    return widened(pa.ipc.read_record_batch(data, _stored_schema_of(header)), schema_of(header))


def read_sections(
    data: bytes, handle: KeyedStateHandle, header: dict[str, Any], owned: KeyGroupRange
) -> Iterator[pa.RecordBatch]:
    """The rows of these key groups. Raises ValueError, LookupError or OSError for bytes that hold something else."""
    schema = schema_of(header)
    stored = _stored_schema_of(header)
    groups = sorted(handle.offsets.keys() & set(owned.groups))
    shares = (pa.ipc.read_record_batch(section_of(data, handle, group), stored) for group in groups)
    for batch in _joined(shares):
        yield widened(batch, schema)


def _joined(shares: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches: each call on a small one is a moment at which other threads take the lock."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for share in shares:
        held.append(share)
        rows += share.num_rows
        if rows >= _READ_AT_A_TIME:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def section_of(data: bytes, handle: KeyedStateHandle, group: int) -> pa.Buffer:
    """The part of a key group, or the HEADER, in the data of this handle, which is not copied. Raises LookupError if
    there is none, or ValueError for data that is too short.
    """
    offset, length, _ = Part.of(handle.offsets[group])
    if not 0 <= offset <= offset + length <= len(data):
        raise ValueError(f"wanted {length} bytes at {offset}, found {len(data)} in all")
    return pa.py_buffer(data).slice(offset, length)
