"""Marks: what a book says of transactions, as text."""

from __future__ import annotations

import pytest

from understudy.runtime.connectors.kafka.marks import MOST_BRANCHES, branches_of, text_of

MOST_BYTES = 4096
"""Of the metadata of an offset."""


def test_of_many_branches_the_newest_stay() -> None:
    branches = {f"{number:08x}": 10**9 + number for number in range(MOST_BRANCHES + 3)}
    text = text_of(branches)
    assert len(text) <= MOST_BYTES
    assert list(branches_of(text).items()) == list(branches.items())[3:]


@pytest.mark.parametrize("text", [None, "", "read by somebody else", "a:b"])
def test_what_somebody_else_has_written_is_no_mark(text: str | None) -> None:
    assert branches_of(text) == {}
