"""Scripts of a few rows run twice: with state that is tidied up as that of millions of rows is, and never tidied up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from understudy.actors.joins import deduplicate, interval_join, lookup_table, regular_join, temporal_join
from understudy.state.columnar import keyed_rows, row_store


@pytest.fixture(autouse=True, scope="module", params=["often_tidied", "untidied"])
def small_state(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "often_tidied":
            for module in (deduplicate, interval_join, lookup_table, regular_join, temporal_join, keyed_rows):
                patch.setattr(module, "_FEWEST_ROWS", 2)
            patch.setattr(row_store, "_FOLLOWED", 2)
            patch.setattr(row_store, "PAIRS_AT_A_TIME", 3)
        yield
