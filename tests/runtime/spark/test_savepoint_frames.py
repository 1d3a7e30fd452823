"""A state of a savepoint as a Spark DataFrame: each partition reads its own key groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.savepoints.made import KEYS, savepoint
from understudy import Savepoint

pytestmark = pytest.mark.spark


def test_a_state_is_a_dataframe_read_in_parallel_by_key_group(spark: Any, tmp_path: Path) -> None:
    opened = Savepoint.open(savepoint(tmp_path))
    total = opened.operator("declared").state("total").to_spark(spark)
    assert total.columns == ["key", "value"]
    assert sorted(row.value for row in total.collect()) == list(range(len(KEYS)))
    partitions = total.rdd.glom().map(len).collect()
    assert sum(1 for rows in partitions if rows) > 1
    aggregation = opened.operator("aggregation").states()[0]
    assert [tuple(row) for row in aggregation.key(7).to_spark(spark).collect()] == [(7, 1, 7, 1)]
    timers = opened.operator("declared").timers().to_spark(spark)
    assert timers.groupBy("domain").count().orderBy("domain").collect() == [
        ("event", len(KEYS)),
        ("processing", len(KEYS)),
    ]
