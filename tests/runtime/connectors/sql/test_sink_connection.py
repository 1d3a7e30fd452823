"""The connection of a sink into a database: never used again after an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from understudy.runtime.connectors.sql.sql_sinks import SqlUpsertSink
from understudy.testing import OperatorHarness

from .databases import lite


def test_after_an_error_the_connection_is_made_again(tmp_path: Path) -> None:
    """What it was in the middle of is not known."""
    seen: list[Any] = []

    def fail(connection: Any) -> NoReturn:
        seen.append(connection)
        raise KeyboardInterrupt

    sink: Any = SqlUpsertSink(lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY)"), "t", key="id")
    with OperatorHarness(sink):
        with pytest.raises(KeyboardInterrupt):
            sink._transact("fail", fail)
        for _ in range(2):
            sink._transact("look", seen.append)
    failed, made, kept = seen
    assert failed.closed
    assert made is kept
    assert made is not failed
