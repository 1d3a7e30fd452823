"""CRC-32 of bytes that lie one behind the other, from the CRC-32 of each, so that no byte is read twice.

The algebra is zlib's, `crc32_combine`: a CRC-32 is a polynomial over GF(2), the highest bit first, and bytes behind it
shift it by as many bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1."""
_BYTE = 1 << 23
"""x to the power of 8."""


def joined_crc32(parts: Iterable[tuple[int, int]]) -> int:
    """Of all parts, each of which is given by its CRC-32 and its length."""
    found = 0
    for checksum, length in parts:
        found = _product(_shift(length), found) ^ checksum
    return found


@lru_cache(maxsize=4096)
def _shift(length: int) -> int:
    """A CRC-32 is multiplied with this when this number of bytes comes behind it."""
    found, position = _ONE, 0
    while length:
        if length & 255:
            found = _product(_power(length & 255, position), found)
        length >>= 8
        position += 1
    return found


@lru_cache(maxsize=2048)
def _power(digit: int, position: int) -> int:
    """The same for `digit * 256**position` bytes."""
    if digit > 1:
        half = _power(digit // 2, position)
        found = _product(half, half)
        return _product(found, _power(1, position)) if digit & 1 else found
    if position == 0:
        return _BYTE
    lower = _power(128, position - 1)
    return _product(lower, lower)


def _product(left: int, right: int) -> int:
    """Modulo the polynomial of CRC-32."""
    product, bit = 0, _ONE
    while left:
        if left & bit:
            product ^= right
            left ^= bit
        bit >>= 1
        right = (right >> 1) ^ _POLYNOMIAL if right & 1 else right >> 1
    return product
