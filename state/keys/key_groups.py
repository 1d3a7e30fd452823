"""Key groups: which of `max_parallelism` groups a key belongs to, and which subtask owns a group.

A group is the unit in which keyed state moves on a rescale. The group of a key never changes, so `max_parallelism` is
fixed for the life of a job's state. Flink: KeyGroupRangeAssignment, KeyGroupRange, MathUtils.murmurHash.

Invariants. The scalar and the vectorised forms give one key the same group, and so does every release: a partitioner
uses one form, state the other, and a savepoint keeps groups. The ranges of all subtasks are disjoint, lie in order, and
cover every group, for any parallelism; `operator_index_of` is the inverse of `key_group_range`. So a subtask that is
restored reads whole groups, and owns every key that is sent to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .column_hash import FEW, Hashes, hashes_of, key_hashes
from .key_hash import InvalidKey, java_hash, signed

__all__ = [
    "InvalidKey",
    "KeyGroupRange",
    "default_max_parallelism",
    "groups_of_hashes",
    "java_hash",
    "key_group",
    "key_group_range",
    "key_groups_of",
    "key_groups_of_list",
    "mix",
    "operator_index_of",
]

DEFAULT_LOWER_BOUND, UPPER_BOUND = 128, 1 << 15
"""Bounds of the default max_parallelism; the upper one is the most that is allowed at all."""

KeyColumns: TypeAlias = "pa.Array | npt.NDArray[Any] | Sequence[pa.Array]"

_CHUNK = 32_768
"""Hashes handled at a time: few enough that intermediate arrays stay in the cache."""

_WORD = 0xFFFFFFFF
_Words: TypeAlias = npt.NDArray[np.uint32]
_u = np.uint32


class KeyGroupRange(NamedTuple):
    """The key groups of one subtask, `first` to `last`, both inclusive."""

    first: int
    last: int

    @property
    def groups(self) -> range:
        return range(self.first, self.last + 1)


def key_group(key: Any, max_parallelism: int) -> int:
    """The group of one key: 0 .. max_parallelism - 1. Raises InvalidKey."""
    return mix(java_hash(key)) % max_parallelism


def key_groups_of(columns: KeyColumns, max_parallelism: int, names: Sequence[str] = ()) -> npt.NDArray[np.int32]:
    """The group of each row's key, the same as `key_group` of it.

    One column: the key is the bare value; a sequence of several: the tuple of the row's values, and of one: the value.
    `names` are for errors. Raises InvalidKey for a null, or for values that cannot be keys.
    """
    if isinstance(columns, np.ndarray):
        columns = pa.array(columns)
    listed = [columns] if isinstance(columns, pa.Array) else columns
    return groups_of_hashes(key_hashes(listed, names), max_parallelism)


def key_groups_of_list(keys: Sequence[Any], max_parallelism: int) -> npt.NDArray[np.int32]:
    """The same for keys in a list; vectorised where all are of one plain type. Raises InvalidKey."""
    return groups_of_hashes(hashes_of(keys), max_parallelism)


def groups_of_hashes(hashes: Hashes, max_parallelism: int) -> npt.NDArray[np.int32]:
    """The group of each hash that `java_hash` or its vectorised forms gave."""
    if len(hashes) <= FEW:
        return np.fromiter([mix(code) % max_parallelism for code in hashes.tolist()], np.int32, len(hashes))
    found = np.empty(len(hashes), np.int32)
    is_power_of_two = max_parallelism & (max_parallelism - 1) == 0
    for start in range(0, len(hashes), _CHUNK):
        mixed = _mix_all(hashes[start : start + _CHUNK].view(np.uint32))
        found[start : start + _CHUNK] = (
            # A mask is the same remainder, without a division.
            mixed & _u(max_parallelism - 1) if is_power_of_two else mixed % _u(max_parallelism)
        )
    return found


def mix(code: int) -> int:
    """Spread a hash over 0 .. 2**31 - 1: Murmur3 of one word with seed 0. Flink: MathUtils.murmurHash."""
    code = code * 0xCC9E2D51 & _WORD
    code = (code << 15 & _WORD | code >> 17) * 0x1B873593 & _WORD
    code = ((code << 13 & _WORD | code >> 19) * 5 + 0xE6546B64 ^ 4) & _WORD
    code = (code ^ code >> 16) * 0x85EBCA6B & _WORD
    code = (code ^ code >> 13) * 0xC2B2AE35 & _WORD
    return abs(signed(code ^ code >> 16)) & 0x7FFF_FFFF


def _mix_all(code: _Words) -> _Words:
    """`mix` of each word; the arithmetic of the type is modulo 2**32 by itself."""
    code = code * _u(0xCC9E2D51)
    code = (code << _u(15) | code >> _u(17)) * _u(0x1B873593)
    code = (code << _u(13) | code >> _u(19)) * _u(5) + _u(0xE6546B64) ^ _u(4)
    code = (code ^ code >> _u(16)) * _u(0x85EBCA6B)
    code = (code ^ code >> _u(13)) * _u(0xC2B2AE35)
    code ^= code >> _u(16)
    return np.abs(code.view(np.int32)).view(np.uint32) & _u(0x7FFF_FFFF)


def key_group_range(max_parallelism: int, parallelism: int, index: int) -> KeyGroupRange:
    """The groups that subtask `index` of `parallelism` owns. Flink: computeKeyGroupRangeForOperatorIndex."""
    _check_parallelism(max_parallelism, parallelism)
    if not 0 <= index < parallelism:
        raise ValueError(f"subtask index {index}; wanted 0 to {parallelism - 1}")
    # All groups g with g * parallelism // max_parallelism == index: from the quotient rounded up to below the next one.
    first = (index * max_parallelism + parallelism - 1) // parallelism
    last = ((index + 1) * max_parallelism - 1) // parallelism
    return KeyGroupRange(first, last)


def operator_index_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """Which subtask owns a group. Flink: computeOperatorIndexForKeyGroup."""
    return key_group * parallelism // max_parallelism


def default_max_parallelism(parallelism: int) -> int:
    """At least 128 and one and a half times the parallelism, a power of two. Flink: computeDefaultMaxParallelism."""
    _check_parallelism(UPPER_BOUND, parallelism)
    rounded = 1 << (parallelism + parallelism // 2 - 1).bit_length()
    return min(max(rounded, DEFAULT_LOWER_BOUND), UPPER_BOUND)


def _check_parallelism(max_parallelism: int, parallelism: int) -> None:
    if not 1 <= max_parallelism <= UPPER_BOUND:
        raise ValueError(f"max_parallelism {max_parallelism}; wanted 1 to {UPPER_BOUND}")
    if not 1 <= parallelism <= max_parallelism:
        raise ValueError(f"parallelism {parallelism}; wanted 1 to max_parallelism, {max_parallelism}")
