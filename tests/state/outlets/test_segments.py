"""Segments: names that say all, bytes that come back as what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import MalformedMessage, OutletBranch
from understudy.state import CheckpointStorage, MissingState, pack_batch
from understudy.state.outlets.lineage import OutletLineage
from understudy.state.outlets.segments import Segment, committed_of, framed, read_segment, records_of, segments_in

FOLDER = "outlets/alerts"


def segment(first: int, end: int, attempt: int = 0, job: str = "aa") -> Segment:
    return Segment(first, end, 10, 1_700_000_000_000, OutletBranch(job, attempt, f"{attempt}f", first))


@given(st.integers(0, 10**15), st.integers(1, 10**6), st.integers(0, 2**31))
def test_a_name_says_what_the_segment_is(first: int, count: int, attempt: int) -> None:
    assert Segment.named(segment(first, first + count, attempt).name) == segment(first, first + count, attempt)


@pytest.mark.parametrize("name", ["", "_metadata", "0-1-2.segment", f"{segment(1, 2).name}.tmp"])
def test_other_files_are_no_segments(name: str) -> None:
    assert Segment.named(name) is None


@pytest.mark.parametrize(
    "batches",
    [[[1, 2], [3]], [[(1, "a")], [{"b": 1}], ["c"]], [[{"a": 1}, {"a": 2}]], []],
    ids=["numbers", "mixed", "dicts", "none"],
)
def test_rows_come_back(batches: list[list[Any]]) -> None:
    assert records_of(framed(map(pack_batch, batches))) == [record for batch in batches for record in batch]


def test_columns_come_back_as_columns() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["x", None]})
    assert records_of(framed([pack_batch(batch)])) == batch


def test_what_is_cut_off_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="cut off"):
        records_of(framed([pack_batch([1, 2])])[:-1])


def test_what_is_committed_follows_from_lineage_and_end(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path))
    written = [
        segment(0, 4),
        segment(4, 9),
        segment(9, 12),
        segment(9, 11, 1),
        segment(11, 20, 1),
        segment(4, 8, 0, "bb"),
    ]
    for each in written:
        storage.write_sealed(f"{FOLDER}/{each.name}", each.name.encode())
    lineage = OutletLineage("alerts", (OutletBranch("aa", 0, "0f", 0), OutletBranch("aa", 1, "1f", 9)))
    found = segments_in(storage, FOLDER)
    assert set(found) == set(written)
    assert committed_of(found, lineage, 11) == [segment(0, 4), segment(4, 9), segment(9, 11, 1)]
    assert committed_of([each for each in found if each != segment(4, 9)], lineage, 11) == [segment(9, 11, 1)]
    assert read_segment(storage, FOLDER, segment(4, 9)) == segment(4, 9).name.encode()
    with pytest.raises(MissingState):
        read_segment(storage, FOLDER, segment(4, 10))
