"""A FileSink that writes what the job reads, and sinks that would meet, are refused when the job is submitted."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import FileSink, InvalidProgram, KafkaSink, StreamEnvironment
from understudy.messages import JobSubmitted
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


def two_sinks(first: FileSink, second: FileSink, *uids: str) -> None:
    env = StreamEnvironment()
    numbers = env.from_collection([{"n": 1, "m": 2}])
    for sink, uid in zip((first, second), uids, strict=True):
        numbers.sink_to(sink, name=f"sink {uid}").uid(uid)
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


@pytest.mark.parametrize("uids", [("out-1", "out_1"), ("out1", "out-1")], ids=str)
def test_two_sinks_of_one_folder_whose_files_would_be_called_alike_are_refused(
    uids: tuple[str, str], tmp_path: Path
) -> None:
    """One removed what the other had pre-committed, as a leftover of its own."""
    folder = tmp_path / "out"
    (tmp_path / "link").symlink_to(folder)
    said = rf"sinks 'sink {uids[0]}' and 'sink {uids[1]}' write into \S+, and their files would have the same names"
    for path in (folder, f"{folder}/", tmp_path / "link"):
        with pytest.raises(InvalidProgram, match=said):
            two_sinks(FileSink(str(folder)), FileSink(str(path)), *uids)


@pytest.mark.parametrize("uids", [("out-1", "out-2"), ("\u58f2", "\u6ce8"), ("a.b", "ab")], ids=ascii)
def test_sinks_of_one_folder_whose_files_are_called_apart_are_fine(uids: tuple[str, str], tmp_path: Path) -> None:
    two_sinks(FileSink(str(tmp_path)), FileSink(str(tmp_path)), *uids)


def test_sinks_of_one_folder_with_different_formats_are_warned_of(tmp_path: Path) -> None:
    """Files have endings: whoever reads out/*.csv is right."""
    said = r"sinks 'sink a' and 'sink b' write into \S+, the first parquet and the second csv: .* a folder of its own"
    with pytest.warns(UserWarning, match=said):
        two_sinks(FileSink(tmp_path), FileSink(f"{tmp_path}/", format="csv"), "a", "b")


@pytest.mark.parametrize(
    ("format", "first", "second", "is_warned_of"),
    [
        ("parquet", "n m", "n", True),
        ("parquet", "n m", "m n", False),
        ("csv", "n m", "m n", True),
        ("csv", "n m", "n m", False),
        ("jsonl", "n m", "n", False),
    ],
)
def test_sinks_of_one_folder_with_different_columns_are_warned_of(
    format: str, first: str, second: str, is_warned_of: bool, tmp_path: Path
) -> None:
    schemas = (pa.schema([(name, pa.int64()) for name in names.split()]) for names in (first, second))
    sinks = [FileSink(tmp_path, format=format, schema=schema) for schema in schemas]
    if not is_warned_of:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            two_sinks(*sinks, "a", "b")
        return
    said = (
        f"the first the columns {first.replace(' ', ', ')}, and the second {second.replace(' ', ', ')}: whoever reads"
    )
    if format == "parquet":
        said = "the first the columns m, n, and the second n: whoever reads"
    with pytest.warns(UserWarning, match=said):
        two_sinks(*sinks, "a", "b")


def test_the_columns_of_the_streams_count_where_the_sinks_have_no_schema(tmp_path: Path) -> None:
    env = StreamEnvironment()
    for name in ("n", "m"):
        env.from_arrow(pa.table({name: [1]})).sink_to(FileSink(tmp_path), name=f"sink {name}")
    with pytest.warns(UserWarning, match="the first the columns n, and the second m"):
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


def test_each_two_sinks_of_a_folder_are_compared(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """The columns of the first are not known here."""
    env = StreamEnvironment()
    env.from_collection([{"n": 1}]).sink_to(FileSink(tmp_path), name="sink of all")
    for name in ("n", "m"):
        env.from_arrow(pa.table({name: [1]})).sink_to(FileSink(tmp_path), name=f"sink {name}")
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
    (said,) = [str(each.message) for each in recwarn]
    assert said.startswith("sinks 'sink n' and 'sink m' write into")


def test_sinks_of_two_folders_may_be_called_alike(tmp_path: Path) -> None:
    two_sinks(FileSink(str(tmp_path / "a")), FileSink(str(tmp_path / "b")), "out-1", "out_1")


def test_a_job_with_a_relative_that_runs_is_warned_of_sinks_that_nobody_guards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment()
    numbers = env.from_collection([{"n": 1}])
    numbers.sink_to(FileSink(str(tmp_path), format="jsonl"), name="files")
    numbers.to_sql(f"sqlite:///{tmp_path}/db", "rows", name="rows")
    translation = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere", name="second")
    submitted = JobSubmitted(translation.graph.job_id)
    translation.warn(submitted, on_this_machine=False)
    assert not caplog.messages
    translation.warn(replace(submitted, relatives=("'first' (1, running)",)), on_this_machine=False)
    assert caplog.messages == [
        "job 'second' goes on from a state that job 'first' (1, running) has gone through too, and that job has not "
        "ended: where both write to one place (sink 'rows'), each record comes twice. Cancel one of them, or see that "
        "they write to different places"
    ]


def test_a_relative_of_a_job_whose_sinks_are_guarded_is_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment()
    env.from_collection([{"n": 1}]).sink_to(FileSink(str(tmp_path), format="jsonl"), name="files")
    translation = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
    submitted = JobSubmitted(translation.graph.job_id, relatives=("'first' (1, running)",))
    translation.warn(submitted, on_this_machine=False)
    assert caplog.messages == []


def test_a_job_of_a_name_that_another_has_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    env.from_collection([{"n": 1}]).collect(name="out")
    for name in ("flights", "job"):
        translation = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere", name=name)
        submitted = JobSubmitted(translation.graph.job_id, namesakes=("job-1, running",))
        translation.warn(submitted, on_this_machine=False)
        translation.warn(replace(submitted, namesakes=()), on_this_machine=False)
    (text,) = caplog.messages
    assert text.startswith("job 'flights' (job-")
    assert "is not the only one of this name: job-1, running. If they are the same program" in text
    assert "understudy stop ID" in text


def test_of_a_folder_whose_job_runs_only_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what that job has left there, with advice to go on from it."""
    env = StreamEnvironment()
    env.from_collection([{"n": 1}]).sink_to(FileSink(tmp_path, format="jsonl"), name="files")
    translation = translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
    submitted = JobSubmitted(translation.graph.job_id)
    monkeypatch.setattr(FileSink, "files_of_others", lambda *_: 3)
    assert not translation.warn(submitted, True, ())
    (left,) = caplog.messages
    assert "holds 3 files of earlier jobs" in left
    caplog.clear()
    monkeypatch.setattr(FileSink, "rival", lambda *_: "job job-1 has begun, in process 7 on host")
    assert translation.warn(submitted, True, ())
    (told,) = caplog.messages
    assert "belongs to another job, whose process runs now: job job-1 has begun, in process 7 on host. If" in told


def two_kafka_sinks(first: KafkaSink, second: KafkaSink) -> None:
    env = StreamEnvironment()
    numbers = env.from_collection([1, 2])
    numbers.sink_to(first, name="orders")
    numbers.sink_to(second, name="alerts")
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


def test_two_kafka_sinks_with_one_prefix_of_transactional_ids_are_refused() -> None:
    """Their producers had the same ids, and ended each other's transactions."""
    said = "sinks 'orders' and 'alerts' have the transactional_id_prefix 'p': .* give each its own, or none"
    with pytest.raises(InvalidProgram, match=said):
        two_kafka_sinks(*(KafkaSink(topic, "host:1", transactional_id_prefix="p") for topic in ("a", "b")))


def test_kafka_sinks_that_cannot_meet_may_have_one_prefix() -> None:
    prefixed = partial(KafkaSink, "a", transactional_id_prefix="p")
    two_kafka_sinks(prefixed("host:1"), prefixed("other:1"))
    two_kafka_sinks(prefixed("host:1"), KafkaSink("a", "host:1", transactional_id_prefix="q"))
    two_kafka_sinks(prefixed("host:1"), prefixed("host:1", guarantee="at-least-once"))
    two_kafka_sinks(KafkaSink("a", "host:1"), KafkaSink("a", "host:1"))


def test_a_folder_that_is_called_as_a_file_is_warned_of(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Users of pandas expect a file."""

    def submitted(path: Path) -> list[str]:
        env = StreamEnvironment()
        env.from_collection([1]).sink_to(FileSink(str(path)), name="out")
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
        return [str(each.message) for each in recwarn]

    assert submitted(tmp_path / "out") == []
    (said,) = submitted(tmp_path / "out.csv")
    assert said.startswith("sink 'out': FileSink writes a folder, with a file of parquet for each checkpoint")
    assert f"leave the ending out, as in FileSink({str(tmp_path / 'out')!r}, format='csv')" in said
    (tmp_path / "again.csv").mkdir()
    assert submitted(tmp_path / "again.csv") == [said], "its user knows by now"


def test_a_place_of_which_nothing_can_be_asked_is_not_asked_of_here(tmp_path: Path) -> None:
    """The check at submit says what is wrong with it."""
    env = StreamEnvironment()
    env.from_collection([1]).sink_to(FileSink(str(tmp_path / ("x" * 300))), name="out")
    translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("data/out.csv", "data/out', format='csv')"),
        ("memory://bucket/day.1.parquet/", "FileSink('memory://bucket/day.1', format='parquet')"),
        ("out.JSON", "/out', format='jsonl')"),
        ("out.ndjson", "/out', format='jsonl')"),
    ],
)
def test_the_advice_on_such_a_name_keeps_its_folder(path: str, advice: str) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).sink_to(FileSink(path), name="out")
    with pytest.warns(UserWarning, match=re.escape(advice)):
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
