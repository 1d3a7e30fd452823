"""What is drawn comes in its turn, and each run has its sixteenth: tests/draw.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from .draw import HERE, ONE_OF, drawn, leaves_out, one_of_each_lot, row_of_files

KEYS = [f"{number:08x}" for number in range(400)]
THEMES = "abcdefghijklmnop"


def test_of_each_lot_one_is_drawn_and_each_by_some_key() -> None:
    row = list(range(3 * ONE_OF))
    draws = [one_of_each_lot(row, key) for key in KEYS]
    assert {tuple(each // ONE_OF for each in draw) for draw in draws} == {(0, 1, 2)}
    assert {each for draw in draws for each in draw} == set(row)


def test_the_lots_are_drawn_apart() -> None:
    row = list(range(3 * ONE_OF))
    assert len({tuple(each % ONE_OF for each in one_of_each_lot(row, key)) for key in KEYS}) > ONE_OF


@pytest.mark.parametrize("length", [1, 5])
def test_a_lot_that_is_short_gives_one_or_none_and_each_in_its_turn(length: int) -> None:
    draws = [one_of_each_lot(range(length), key) for key in KEYS]
    assert {len(draw) for draw in draws} == {0, 1}
    assert {each for draw in draws for each in draw} == set(range(length))


def test_the_same_key_draws_the_same() -> None:
    assert one_of_each_lot(row_of_files(), KEYS[0]) == one_of_each_lot(row_of_files(), KEYS[0])


def test_each_file_that_is_drawn_is_there_and_stands_in_the_row_once() -> None:
    assert len(row_of_files()) == len(set(row_of_files())) > 10 * ONE_OF
    assert [each for each in row_of_files() if not (HERE / each).exists()] == []


def test_a_run_has_its_share_of_the_files_whatever_the_key() -> None:
    counts = {len(one_of_each_lot(row_of_files(), key)) for key in KEYS}
    assert max(counts) - min(counts) <= 1


def test_a_file_that_is_not_drawn_is_in_each_run() -> None:
    assert not any(leaves_out(Path(__file__), key) for key in KEYS)


class Item(NamedTuple):
    """What a draw asks of a test."""

    nodeid: str
    mark: pytest.Mark | None = None
    callspec: Any = None
    path: Path = Path(__file__)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark if self.mark and self.mark.name == name else None


def test_of_what_is_alike_a_run_has_its_share_and_all_of_a_theme() -> None:
    alike = [Item(f"test_each[{number}]", pytest.mark.drawn.mark) for number in range(2 * ONE_OF)]
    mark = pytest.mark.drawn(by="theme").mark
    of_a_theme = [
        Item(f"test_of_a_theme[{theme}-{number}]", mark, SimpleNamespace(params={"theme": theme}))
        for theme in THEMES
        for number in range(3)
    ]
    items: Any = [*alike, *of_a_theme, Item("test_that_is_not_drawn")]
    themes = set()
    for key in KEYS:
        names = [item.nodeid for item in drawn(items, key)]
        assert [name for name in names if "of_a_theme" not in name][-1] == "test_that_is_not_drawn"
        assert sum("test_each" in name for name in names) == 2
        found = [name.removeprefix("test_of_a_theme[")[0] for name in names if "of_a_theme" in name]
        assert len(found) == 3
        assert len(set(found)) == 1
        themes |= set(found)
    assert themes == set(THEMES)


def test_each_file_of_the_row_runs_with_some_keys_and_not_with_others() -> None:
    items: Any = [Item("test_that_is_not_drawn_by_itself", path=HERE / name) for name in row_of_files()]
    runs = [set(drawn(items, key)) for key in KEYS]
    assert set.union(*runs) == set(items)
    assert set.intersection(*runs) == set()
