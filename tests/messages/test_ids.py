"""Ids that become names of files."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import operator_id_of
from understudy.messages.ids import LONGEST_OPERATOR_ID


@given(st.text(st.characters(), min_size=1, max_size=400))
@example("n" * 5_000)
@example("語" * 5_000)
@example("half of a pair: \udcff")
def test_an_operators_id_is_a_part_of_a_file_name_whatever_it_is_called(identity: str) -> None:
    """A shared file's name has it twice, and a file system takes 255 bytes."""
    assert re.fullmatch(r"[A-Za-z0-9_-]+", operator_id_of(identity))
    assert len(operator_id_of(identity)) <= LONGEST_OPERATOR_ID


def test_a_short_name_stays_as_it_is_and_long_ones_that_begin_alike_are_told_apart() -> None:
    assert operator_id_of("n" * LONGEST_OPERATOR_ID) == "n" * LONGEST_OPERATOR_ID
    long = [operator_id_of("n" * 300 + last) for last in "ab"]
    assert len(set(long)) == 2
    assert all(each.startswith("nnnnnnnn") for each in long)
