"""A FileSink that writes what the job reads is refused when the job is submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import FileSink, InvalidProgram, StreamEnvironment
from understudy.runtime.api.translation import translate


def build(path: Path, sink: FileSink, **options: Any) -> None:
    env = StreamEnvironment()
    env.from_csv(str(path), name="lines", **options).sink_to(sink, name="out")
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


@pytest.mark.parametrize("glob", ["", "*", "*.csv"])
@pytest.mark.parametrize("options", [{}, {"watch_ms": 100}])
def test_a_sink_that_writes_what_the_job_reads_is_refused(glob: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    said = r"sink 'out' writes into \S+, and source 'lines' reads \S+: this job, or its next run, would read its"
    with pytest.raises(InvalidProgram, match=said):
        build(tmp_path / glob, FileSink(str(tmp_path), format="csv"), **options)


def test_what_it_does_not_read_it_may_write(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    schema = pa.schema([("n", pa.int64())])
    build(tmp_path, FileSink(str(tmp_path / "out"), format="csv"))
    build(tmp_path / "*.csv", FileSink(str(tmp_path), format="jsonl"), schema=schema)
    build(tmp_path / "a.csv", FileSink(str(tmp_path), format="csv"), watch_ms=100)
    build(tmp_path / "*.csv", FileSink("memory://folder", format="csv"))
