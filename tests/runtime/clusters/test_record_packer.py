"""RecordPacker: which records an inlet's schema takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from understudy.actors.flow.records import RecordMismatch
from understudy.runtime.clusters.record_packer import RecordPacker

SCHEMA = pa.schema([pa.field("page", pa.string(), nullable=False), ("ms", pa.int64()), ("tags", pa.list_(pa.string()))])


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
        RecordPacker(SCHEMA).pack(record)


def test_an_explicit_none_is_null_where_the_schema_lets_it_be() -> None:
    packed = RecordPacker(SCHEMA).pack({"tags": None, "page": "/", "ms": None})
    assert msgpack.unpackb(packed) == ["/", None, None]


@dataclass
class View:
    page: str


def test_a_record_of_a_class_without_the_field_is_refused() -> None:
    with pytest.raises(RecordMismatch, match="missing ms, tags"):
        RecordPacker(SCHEMA).pack(View("/"))
