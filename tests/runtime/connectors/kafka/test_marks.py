"""Marks: what a book says of transactions, as text."""

from __future__ import annotations

import pytest

from understudy.runtime.connectors.kafka.marks import MOST_BRANCHES, branches_of, is_marked, text_of
from understudy.runtime.connectors.kafka.transactional_producer import NOTHING, PreparedTransaction

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


@pytest.mark.parametrize(("branch", "sequence", "expected"), [("a", 4, True), ("a", 5, True), ("a", 6, False)])
def test_what_a_branch_committed_before_its_mark_is_committed(branch: str, sequence: int, expected: bool) -> None:
    """Whoever ended it once more could end a later transaction of the same producer."""
    transaction: PreparedTransaction = {**NOTHING, "branch": branch, "sequence": sequence}
    assert is_marked(transaction, {"a": 5, "b": 9}) is expected


def test_a_branch_without_a_mark_has_committed_nothing() -> None:
    assert not is_marked({**NOTHING, "branch": "c", "sequence": 1}, {"a": 5})
