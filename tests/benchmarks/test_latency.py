"""latency and checkpoint: what their checks notice, and what their figures mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

latency: Any = pytest.importorskip("benchmarks.latency", reason="run from the root of the checkout")
checkpoint: Any = pytest.importorskip("benchmarks.checkpoint", reason="run from the root of the checkout")

RATE, SECONDS = 1_024, 6
RECORDS = RATE * SECONDS


def arrivals(late_ms: float = 0.0, taken_ms: float = 2.0) -> Any:
    """Records of an ideal source, one by one; those after its fifth second all emitted `late_ms` late."""
    ids = np.arange(RECORDS)
    blocks, within = np.divmod(ids, latency.BLOCK_ROWS)
    position = blocks // latency.SUBTASKS * latency.BLOCK_ROWS + within
    due = (position * 1e9 / (RATE / latency.SUBTASKS)).astype(np.int64)
    emitted = due + np.where(due >= 5e9, int(late_ms * 1e6), 0)
    return np.column_stack([ids, emitted, emitted + int(taken_ms * 1e6)])


def test_records_lost_doubled_and_too_slow_are_noticed() -> None:
    right = arrivals()
    assert latency.check(right, RECORDS) == []
    assert f"{RECORDS - 1} records arrived" in latency.check(right[1:], RECORDS)[0]
    assert f"{RECORDS - 1} of them distinct" in latency.check(np.vstack([right[1:], right[5]]), RECORDS)[0]
    assert latency.kept_up(right, RATE)
    assert not latency.kept_up(right, 2 * RATE)


def test_time_from_when_a_record_was_due_shows_a_source_held_back() -> None:
    counted = latency.settled(arrivals(late_ms=30.0))
    assert latency.percentiles(counted, counted[:, 1])["max_ms"] == 2.0
    from_due = latency.percentiles(counted, latency.due_ns(counted, RATE))
    assert (round(from_due["p50_ms"]), round(from_due["max_ms"])) == (2, 32)
    assert round(latency.percentiles(counted[:100], latency.due_ns(counted, RATE)[:100])["max_ms"]) == 2


@pytest.mark.parametrize("wrong", [None, "count", "sum", "lost"])
def test_checkpoint_compares_every_total(tmp_path: Path, wrong: str | None) -> None:
    keys, rows = 7, 100
    ids = np.arange(rows)
    counts = np.bincount(ids % keys)
    sums = np.array([ids[ids % keys == key].sum() for key in range(keys)])
    table = {"key": np.arange(keys), "count": counts, "sum": sums}
    if wrong in table:
        table[wrong][3] += 1
    written = pa.table(table).slice(wrong == "lost")
    (tmp_path / "totals").mkdir()
    pq.write_table(written, tmp_path / "totals" / "part.parquet")
    assert bool(checkpoint.check(tmp_path, keys, rows)) == (wrong is not None)
