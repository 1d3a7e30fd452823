"""The kit's contract, on real tables. It drives one operator: the committer, which is all that touches the table; its
records are files that lie there. What writers do is in sink_contract.py, and both in a job in clusters/test_lakes.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from understudy.actors.operators.operator import Operator
from understudy.testing import OperatorHarness, SinkContract

from .lake import DeltaLake, IcebergLake, Lake, rows


class _Committer(SinkContract):
    kind: ClassVar[Any]
    folder: ClassVar[Path]
    lake: ClassVar[Lake]
    written: ClassVar[dict[int, Any]]

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        type(self).folder = tmp_path

    def clear(self) -> None:
        kind, folder = type(self), self.folder
        kind.lake = self.kind(folder / f"lake-{len(list(folder.iterdir()))}")
        kind.lake.make()
        kind.written = {}

    def make_sink(self) -> Operator:
        return self.lake.sink().committer()  # type: ignore[no-any-return]

    def record(self, index: int) -> Any:
        """What a writer sends for a file of one row."""
        if index not in self.written:
            with OperatorHarness(self.lake.sink().writer(), job_id=f"writer-{index}") as writer:
                writer.process(pa.RecordBatch.from_pylist(rows([index])))
                writer.snapshot()
                (self.written[index],) = writer.output()
        return self.written[index]

    def contents(self) -> list[Any]:
        found = self.lake.keys()
        return [self.written[key] for key in found]

    def test_a_rescale_from_four_to_two_to_three(self) -> None:
        """There is one committer."""
        with pytest.raises(Exception, match="raised") as refused:
            OperatorHarness(self.lake_made().sink().committer(), parallelism=2)
        assert "wanted parallelism 1" in str(refused.value.__cause__)

    def lake_made(self) -> Lake:
        self.clear()
        return self.lake


@pytest.mark.drawn
class TestDeltaCommitterAtSomePoints(_Committer):
    kind = DeltaLake
    outside = ("deltalake", "understudy.runtime.connectors.lakes.delta_table")
    most_points = 4


@pytest.mark.slow
class TestDeltaCommitter(TestDeltaCommitterAtSomePoints):
    most_points = 60


@pytest.mark.slow
class TestIcebergCommitter(_Committer):
    kind = IcebergLake
    outside = ("pyiceberg",)
    most_points = 12


@pytest.mark.slow
class TestIcebergCommitterThatCompacts(TestIcebergCommitter):
    """After each commit, on a thread of its own, which outlives the attempts that are killed."""

    def make_sink(self) -> Operator:
        return self.lake.sink(commits_per_compaction=1).committer()  # type: ignore[no-any-return]
