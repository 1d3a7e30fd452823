"""Sources opened and read to their end, and files that the contract reads."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from understudy.actors.operators.source import END, Source
from understudy.runtime.connectors import (
    FileSource,
)

from ....contracts.source import RECORDS, SourceContract
from ..harness import make_context

TABLE = pa.table({"n": list(range(RECORDS)), "name": [f'line\n"{n}"' if n % 7 else "" for n in range(RECORDS)]})


class FileContract(SourceContract):
    """Three files of unequal length."""

    folder: Path
    format: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def files(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folder = tmp_path_factory.mktemp(cls.format)
        for index, rows in enumerate((TABLE.slice(0, 31), TABLE.slice(31, 5), TABLE.slice(36))):
            cls.write(rows, cls.folder / f"part-{index}")
        (cls.folder / "_SUCCESS").touch()

    @classmethod
    def write(cls, rows: pa.Table, path: Path) -> None:
        raise NotImplementedError

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        source = FileSource(str(self.folder), self.format, batch_rows=batch_rows, records_per_second=records_per_second)
        return pickle.loads(pickle.dumps(source))  # type: ignore[no-any-return]


def opened(source: Source, parallelism: int = 1, **where: Any) -> Source:
    source.context = make_context(0, parallelism, **where)
    source.open()
    return source


def all_rows(source: Source) -> list[dict[str, Any]]:
    opened(source)
    rows: list[dict[str, Any]] = []
    while (batch := source.poll()) is not END:
        assert isinstance(batch, pa.RecordBatch)
        rows += batch.to_pylist()
    return rows
