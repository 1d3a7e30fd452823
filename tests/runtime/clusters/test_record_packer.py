"""RecordPacker: what fits an inlet's schema becomes bytes, and a record that does not leaves no trace in the next."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from understudy.actors.flow.records import RecordMismatch
from understudy.messages import unpack_plain
from understudy.runtime.clusters.record_packer import RecordPacker, complete_batch

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


VIEWS = pa.schema([pa.field("page", pa.string(), nullable=False), ("ms", pa.int64()), ("tags", pa.list_(pa.string()))])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"page": "/", "tags": []}, r"lacks 'ms'; found page, tags, wanted page, ms, tags: add ms, or send None"),
        ({"page": "/"}, r"lacks 'ms', 'tags'; found page, wanted page, ms, tags: add ms, tags, or send None"),
        ({"ms": 1, "tags": []}, r"lacks 'page'; found ms, tags, wanted page, ms, tags: add page$"),
        ({"page": "/", "mss": 1, "tags": []}, r"lacks 'ms'; found page, mss, tags, .*: is 'mss' meant as 'ms'\?"),
        ({}, r"lacks 'page', 'ms', 'tags'; found nothing"),
        ({"page": None, "ms": 1, "tags": []}, "'page' is None, wanted string not null"),
    ],
)
def test_a_record_that_lacks_a_field_is_refused(record: dict[str, Any], says: str) -> None:
    with pytest.raises(RecordMismatch, match=says):
        RecordPacker(VIEWS).pack(record)


def test_nor_among_others() -> None:
    with pytest.raises(RecordMismatch, match=r"record {'id': 2} lacks 'name'; .*: add name, or send None"):
        complete_batch([{"id": 1, "name": "a"}, {"id": 2}], SCHEMA)
    assert complete_batch([{"name": None, "id": 1}], SCHEMA).to_pylist() == [{"id": 1, "name": None}]


def test_an_explicit_none_is_null_where_the_schema_lets_it_be() -> None:
    packed = RecordPacker(VIEWS).pack({"tags": None, "page": "/", "ms": None})
    assert msgpack.unpackb(packed) == ["/", None, None]


@dataclass
class View:
    page: str


def test_a_record_of_a_class_without_the_field_is_refused() -> None:
    with pytest.raises(RecordMismatch, match="missing ms, tags"):
        RecordPacker(VIEWS).pack(View("/"))
