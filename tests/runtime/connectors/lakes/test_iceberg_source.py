"""IcebergSource on real tables: what every source does, what those of lakes do."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from understudy import IcebergSource
from understudy.actors.operators.source import Source
from understudy.runtime.connectors.paced_source import PacedSource

from ....contracts.source import SourceContract
from .lake import IcebergLake, Lake
from .source_contract import LakeSourceContract, filled
from .test_iceberg_sink import forget_history

pytest.importorskip("pyiceberg")


@pytest.mark.slow
class TestSource(SourceContract):
    made: ClassVar[IcebergSource]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _table(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.made = filled(IcebergLake(tmp_path_factory.mktemp("iceberg"))).source()

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        source = copy.copy(self.made)
        PacedSource.__init__(source, batch_rows, records_per_second)
        return source


class TestIcebergSource(LakeSourceContract):
    def make_lake(self, folder: Path) -> IcebergLake:
        return IcebergLake(folder)

    def add_column(self, lake: Lake, name: str) -> None:
        assert isinstance(lake, IcebergLake)
        with lake.table().update_schema() as update:
            update.union_by_name(pa.schema([(name, pa.int64())]))

    def forget_history(self, lake: Lake) -> None:
        forget_history(lake)
