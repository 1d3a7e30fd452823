"""RecordPacker: what fits an inlet's schema becomes bytes, and a record that does not leaves no trace in the next."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from understudy.actors.flow.records import RecordMismatch
from understudy.messages import unpack_plain
from understudy.runtime.clusters.record_packer import RecordPacker

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 1, "name": "half a surrogate pair: \udcff"},
        {"id": 2**63, "name": "too large"},
        {"id": -(2**63) - 1, "name": "too small"},
        {"id": 2**64, "name": "too large for msgpack, too"},
        {"id": "1", "name": "a string"},
    ],
)
def test_a_record_that_does_not_fit_is_refused_and_the_next_is_packed_as_ever(wrong: dict[str, object]) -> None:
    packer = RecordPacker(SCHEMA)
    with pytest.raises((RecordMismatch, UnicodeError)):
        packer.pack(wrong)
    assert unpack_plain(packer.pack({"id": 2**63 - 1, "name": "fits"})) == [2**63 - 1, "fits"]


def test_threads_pack_side_by_side() -> None:
    packer = RecordPacker(SCHEMA)

    def packed(thread: int) -> list[bytes]:
        return [packer.pack({"id": index, "name": f"{thread}-{index}"}) for index in range(2_000)]

    with ThreadPoolExecutor(4) as pool:
        for thread, found in enumerate(pool.map(packed, range(4))):
            assert [unpack_plain(each) for each in found] == [[index, f"{thread}-{index}"] for index in range(2_000)]
