"""Failures as they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors.failure import describe
from understudy.messages import DictRow, row_type


@pytest.mark.parametrize("record", [row_type(("origin", "delay"))("JFK", 1), DictRow(origin="JFK", delay=1)], ids=type)
@pytest.mark.parametrize("read", [lambda record: record.delya, lambda record: record["delya"]], ids=["dot", "brackets"])
def test_a_wrong_column_is_told_alike_for_every_record(record: Any, read: Callable[[Any], Any]) -> None:
    with pytest.raises((AttributeError, KeyError)) as raised:
        read(record)
    assert describe(raised.value).error_message == (
        "no column 'delya'; the row has origin, delay; did you mean 'delay'?"
    )
