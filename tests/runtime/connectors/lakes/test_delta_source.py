"""DeltaSource on real tables: what every source does, what those of lakes do, and what is Delta's own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import ClassVar

import pytest

from understudy import DeltaSource, StreamEnvironment, UnsupportedTable
from understudy.actors.operators.source import Source
from understudy.runtime.connectors.paced_source import PacedSource
from understudy.testing import OperatorHarness

from ....contracts.source import SourceContract
from .lake import DeltaLake, Lake, rows
from .source_contract import LakeSourceContract, filled, keys, read_all
from .test_delta_sink import forget_history

pytest.importorskip("deltalake")


class TestSource(SourceContract):
    made: ClassVar[DeltaSource]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _table(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.made = filled(DeltaLake(tmp_path_factory.mktemp("delta"))).source()

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        source = copy.copy(self.made)
        PacedSource.__init__(source, batch_rows, records_per_second)
        return source


class TestDeltaSource(LakeSourceContract):
    def make_lake(self, folder: Path) -> DeltaLake:
        return DeltaLake(folder)

    def add_column(self, lake: Lake, name: str) -> None:
        from deltalake import Field

        assert isinstance(lake, DeltaLake)
        lake.table().alter.add_columns([Field(name, "long")])

    def forget_history(self, lake: Lake) -> None:
        forget_history(lake)


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    lake = DeltaLake(tmp_path)
    lake.make()
    return lake


def test_batch_rows_of_the_source_go_before_those_of_the_environment(lake: DeltaLake) -> None:
    env = StreamEnvironment(batch_rows=100)
    for options, wanted in ({}, 100), ({"batch_rows": 10}, 10):
        env.from_delta(str(lake.path), **options)
        assert env.graph.nodes[-1].operator.batch_rows == wanted  # type: ignore[attr-defined]


def test_a_compaction_brings_no_rows_again(lake: DeltaLake) -> None:
    for number in range(3):
        lake.append(rows([number]))
    with OperatorHarness(lake.source(watch_ms=50)) as reading:
        read_all(reading)
        lake.table().optimize.compact()
        lake.append(rows([3]))
        reading.advance(50)
        read_all(reading)
        assert keys(reading) == [0, 1, 2, 3]


def test_a_table_with_deletion_vectors_is_refused(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    lake.make(**{"delta.enableDeletionVectors": "true"})
    with pytest.raises(UnsupportedTable, match="deletionVectors"):
        lake.source()


def test_a_followed_table_that_is_vacuumed_too_soon_is_an_error(lake: DeltaLake) -> None:
    """Rows that were compacted before they were read, and then vacuumed."""
    with OperatorHarness(lake.source(watch_ms=50)) as reading:
        read_all(reading)
        for number in range(3):
            lake.append(rows([number]))
        lake.table().optimize.compact()
        lake.table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        reading.advance(50)
        with pytest.raises(Exception, match="delta-source") as failed:
            read_all(reading)
        assert "a vacuum removed it" in str(failed.value.__cause__)
        reading.crash()
