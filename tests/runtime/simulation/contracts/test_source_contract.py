"""SourceContract: our sources pass, and mistakes are found and told."""

from __future__ import annotations

import json
import sqlite3
import unittest
from pathlib import Path
from typing import Any

import pytest

from understudy import END, Source
from understudy.runtime.connectors import FileSource
from understudy.testing import SourceContract

ROWS = [{"id": index} for index in range(12)]


@pytest.mark.drawn
class TestTheFileSource(SourceContract):
    outside = ("fsspec", "os", "pyarrow")
    most_points = 30

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        for part in range(3):
            lines = [json.dumps(row) + "\n" for row in ROWS[part::3]]
            (tmp_path / f"{part}.jsonl").write_text("".join(lines))

    def clear(self) -> None:
        """It changes nothing."""

    def make_source(self) -> Source:
        return FileSource(str(self.folder / "*.jsonl"), format="jsonl")

    def wanted(self) -> list[Any]:
        return ROWS


class FromSqlite(Source):
    def __init__(self, path: str) -> None:
        self.path, self.last = path, -1

    def open(self) -> None:
        self.db = sqlite3.connect(self.path, check_same_thread=False)

    def close(self) -> None:
        self.db.close()

    def poll(self) -> Any:
        found = self.db.execute("SELECT id FROM rows WHERE id > ? ORDER BY id LIMIT 2", (self.last,)).fetchall()
        if not found:
            return END
        self.last = found[-1][0]
        return [{"id": id} for (id,) in found]

    def offset(self) -> Any:
        return self.last

    def seek(self, offset: Any) -> None:
        self.last = offset


class OneBehind(FromSqlite):
    """Goes on one row before it should."""

    def seek(self, offset: Any) -> None:
        self.last = offset - 1


class Consuming(FromSqlite):
    """Takes rows out of the table when they are read: nobody can read them again."""

    def poll(self) -> Any:
        found = super().poll()
        self.db.execute("DELETE FROM rows WHERE id <= ?", (self.last,))
        self.db.commit()
        return found


class ReadingAhead(FromSqlite):
    """Reads a page of six, gives it in two batches, and records its end with the first."""

    def open(self) -> None:
        super().open()
        self.page: list[Any] = []

    def poll(self) -> Any:
        if not self.page:
            self.page = self.db.execute("SELECT id FROM rows WHERE id > ? LIMIT 6", (self.last,)).fetchall()
        if not self.page:
            return END
        self.last = self.page[-1][0]
        given, self.page = self.page[:3], self.page[3:]
        return [{"id": id} for (id,) in given]


class Furthest(FromSqlite):
    """Subtask i of p reads every p-th row; after a change of p all go on from where the furthest was."""

    def poll(self) -> Any:
        own = (self.last, self.context.parallelism, self.context.subtask_index)
        found = self.db.execute("SELECT id FROM rows WHERE id > ? AND id % ? = ? LIMIT 1", own).fetchall()
        if not found:
            return END
        self.last = found[-1][0]
        return [{"id": id} for (id,) in found]

    def rescale(self, offsets: Any) -> None:
        self.last = max(offsets)


class SqliteContract(SourceContract):
    outside = ("sqlite3",)
    kind: Any = FromSqlite

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = str(tmp_path / "rows.db")

    def clear(self) -> None:
        with sqlite3.connect(self.path) as db:
            db.execute("CREATE TABLE IF NOT EXISTS rows (id PRIMARY KEY)")
            db.executemany("INSERT OR IGNORE INTO rows VALUES (:id)", ROWS)
        db.close()

    def make_source(self) -> Source:
        made: Source = self.kind(self.path)
        return made

    def wanted(self) -> list[Any]:
        return ROWS


@pytest.mark.drawn
class TestASourceOfATable(SqliteContract):
    pass


def contract_of(kind: Any, folder: Path) -> SqliteContract:
    contract = SqliteContract()
    contract.path, contract.kind = str(folder / "rows.db"), kind
    return contract


@pytest.mark.parametrize(("kind", "wrong"), [(OneBehind, "is there 2 times, wanted 1"), (Consuming, "is missing")])
def test_a_mistake_is_found(kind: Any, wrong: str, tmp_path: Path) -> None:
    contract = contract_of(kind, tmp_path)
    with pytest.raises(AssertionError) as caught:
        contract.test_a_kill_before_and_after_each_call()
    assert wrong in str(caught.value)
    assert "attempt 1 is killed " in str(caught.value)
    assert "while it was polled" in str(caught.value)


def test_a_page_that_is_recorded_before_it_is_given_is_found(tmp_path: Path) -> None:
    """Though two batches are a page: barriers fall in the middle of one, too."""
    with pytest.raises(AssertionError, match="is missing"):
        contract_of(ReadingAhead, tmp_path).test_a_kill_before_and_after_each_call()


def test_a_rescale_to_the_furthest_offset_is_found(tmp_path: Path) -> None:
    """Subtasks come unequally far."""
    with pytest.raises(AssertionError, match="is missing"):
        contract_of(Furthest, tmp_path).test_a_rescale()


def test_a_source_that_cannot_be_rescaled_is_no_pass(tmp_path: Path) -> None:
    """It is skipped, with the reason; it fails where the contract says what the source is to be rescaled to."""

    class Single(SqliteContract):
        parallelisms = (1,)

    for contract in (contract_of(FromSqlite, tmp_path), Single()):
        contract.path, contract.kind = str(tmp_path / "rows.db"), FromSqlite
        with pytest.raises(unittest.SkipTest, match="FromSqlite has no `rescale`"):
            contract.test_a_rescale()

    class Claims(SqliteContract):
        parallelisms = (1, 2)

    claims = Claims()
    claims.path, claims.kind = contract.path, contract.kind
    with pytest.raises(AssertionError, match=r"Claims sets `parallelisms` to \(1, 2\): define FromSqlite\.rescale"):
        claims.test_a_rescale()
