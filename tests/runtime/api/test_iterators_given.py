"""An iterator that has no end, or that was read before, is told of."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import pytest

from understudy import StreamEnvironment
from understudy.runtime.api.iterators_given import told_when_many


def test_one_without_an_end_is_told_of_while_it_is_read() -> None:
    records = told_when_many(itertools.count(), many=3)
    assert [next(records), next(records)] == [0, 1]
    with pytest.warns(UserWarning, match=r"iterator has given 3 records, and goes on: .* env\.generate\("):
        assert next(records) == 2


def test_a_generator_is_named() -> None:
    def numbers() -> Iterator[int]:
        yield from range(5)

    with pytest.warns(UserWarning, match="the generator numbers has given 5 records"):
        assert list(told_when_many(numbers(), many=5)) == [0, 1, 2, 3, 4]


def test_one_that_was_read_before_is_told_of_and_others_are_not() -> None:
    read = iter([1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StreamEnvironment().from_collection(iter([1, 2]))
        list(read)
    with pytest.warns(UserWarning, match="from_collection: the iterator gave no record: one that was read") as caught:
        StreamEnvironment().from_collection(read)
    assert caught[0].filename == __file__
