"""MapBatches: what its function may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.operators.map_batches import MapBatches

BATCH = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda batch: batch, [BATCH]),
        (lambda batch: pa.Table.from_batches([batch]), [BATCH]),
        (lambda batch: [batch.slice(0, 1), batch.slice(1)], [BATCH.slice(0, 1), BATCH.slice(1)]),
        (lambda batch: (part for part in (batch, batch)), [BATCH, BATCH]),
        (lambda batch: batch.slice(3), []),
        (lambda batch: [], []),
    ],
)
def test_batches_of_all_shapes(
    function: Any, expected: Any, opened: Callable[..., Any], run: Callable[..., Any]
) -> None:
    assert run(opened(MapBatches(function)), BATCH) == expected


@pytest.mark.parametrize("result", [None, 3, {"n": [1]}, [1], "text"])
def test_anything_else_is_refused(result: Any, opened: Callable[..., Any], run: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"wanted a pyarrow.RecordBatch, .* found (an? (int|dict|list|str)|None)"):
        run(opened(MapBatches(lambda batch: result)), BATCH)
