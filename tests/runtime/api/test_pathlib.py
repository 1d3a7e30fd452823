"""Where a path is wanted, one of pathlib will do; a URL in one, and a list of paths, are answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, LocalCluster, StreamEnvironment
from understudy.runtime.api.errors import InvalidSetting


def test_a_job_reads_writes_and_keeps_its_checkpoints_at_such_paths(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\n2\n")
    env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=tmp_path / "checkpoints")
    env.from_csv(tmp_path / "in.csv").map(lambda row: {"n": row.n}).sink_to(FileSink(tmp_path / "out", "jsonl"))
    with LocalCluster(debug=True) as cluster:
        cluster.submit(env).wait()
    (part,) = (tmp_path / "out").glob("part-*")
    assert part.read_text() == '{"n": 1}\n{"n": 2}\n'
    assert (tmp_path / "checkpoints").is_dir()


@pytest.mark.parametrize("format", ["csv", "jsonl", "text"])
@pytest.mark.parametrize("watch", [{}, {"watch_ms": 1_000}], ids=["once", "watched"])
def test_each_kind_of_file_is_found(tmp_path: Path, format: str, watch: dict[str, Any]) -> None:
    (tmp_path / "one").write_text('{"n": 1}\n')
    StreamEnvironment().from_files(tmp_path / "one", format, **watch)


def test_a_url_in_pathlib_is_refused_with_the_argument() -> None:
    with pytest.raises(InvalidSetting, match=r"^checkpoint_dir: .*pathlib makes one slash of two: write it as a text"):
        StreamEnvironment(checkpoint_dir=Path("s3://bucket/checkpoints"))


@pytest.mark.parametrize("found", [["a.csv", "b.csv"], (Path("a.csv"),)])
def test_several_paths_are_told_what_to_write(found: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"^path: wanted one path or URL, found .*a glob as in 'data/\*\.csv'"):
        StreamEnvironment().from_csv(found)


def test_a_path_with_nul_is_refused_and_the_text_names_it() -> None:
    with pytest.raises(InvalidSetting, match=r"^checkpoint_dir: .*it holds U\+0000"):
        StreamEnvironment(checkpoint_dir="a\0b")
    for use in (FileSink, StreamEnvironment().from_csv, StreamEnvironment().from_text):
        for path in ("a\0b", Path("a\0b")):
            with pytest.raises(ValueError, match=r"it holds U\+0000"):
                use(path)
