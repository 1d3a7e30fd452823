"""State that is small is tidied up as that of millions of rows is, so that scripts of a few rows try it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from understudy.actors.joins import deduplicate, interval_join, lookup_table, regular_join, temporal_join
from understudy.state.columnar import keyed_rows, row_store


@pytest.fixture(autouse=True, scope="module")
def small_state() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (deduplicate, interval_join, lookup_table, regular_join, temporal_join, keyed_rows):
            patch.setattr(module, "_FEWEST_ROWS", 2)
        patch.setattr(row_store, "_FOLLOWED", 2)
        patch.setattr(row_store, "PAIRS_AT_A_TIME", 3)
        yield
