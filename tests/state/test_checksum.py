"""The CRC-32 of all from those of its parts, against zlib's own over the same bytes."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from understudy.state.checksum import joined_crc32

LENGTHS = st.sampled_from([0, 1, 2, 255, 256, 257, 65_535, 65_536, 70_001, 1 << 24])


@given(st.lists(st.binary(max_size=300)))
def test_it_is_that_of_the_bytes_one_behind_the_other(parts: list[bytes]) -> None:
    assert joined_crc32((zlib.crc32(part), len(part)) for part in parts) == zlib.crc32(b"".join(parts))


@given(st.binary(max_size=9), LENGTHS)
def test_parts_may_be_long(first: bytes, length: int) -> None:
    second = bytes(length)
    found = joined_crc32([(zlib.crc32(first), len(first)), (zlib.crc32(second), length)])
    assert found == zlib.crc32(first + second)
