"""A savepoint's path, as a user may write it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from understudy import ActorFuture, CannotRestore, JobFuture, StreamEnvironment
from understudy.runtime.api.errors import InvalidSetting
from understudy.runtime.clusters.paths import savepoint_at, target_folder
from understudy.testing import DebugCluster


@pytest.mark.parametrize("path", ["/savepoints/a", Path("/savepoints/a"), "s3://bucket/a", "jobmanager://savepoints/a"])
def test_an_absolute_path_is_what_it_is(path: Any) -> None:
    assert savepoint_at(path) == (os.fspath(path), "")


@pytest.mark.parametrize("path", ["daily/a", Path("daily/a")])
def test_a_relative_path_goes_with_the_working_directory(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert savepoint_at(path) == ("daily/a", str(tmp_path))
    assert target_folder(path) == "daily/a"


def test_home_is_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert savepoint_at("~/a") == ("/home/ada/a", "")
    assert target_folder("~/daily") == "/home/ada/daily"


def test_a_working_directory_that_is_gone_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert savepoint_at("a") == ("a", "")
    monkeypatch.undo()


@pytest.mark.parametrize("path", ["", 7, b"/a"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match="wanted a path that is not empty, found"):
            use(path)


@pytest.mark.parametrize("path", ["daily\n", "a\tb", "a\x7f"], ids=repr)
def test_a_line_break_in_a_path_is_refused(path: str) -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match="without line breaks and control characters, found "):
            use(path)


def test_a_path_that_utf_8_cannot_write_is_refused() -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match="wanted a path that can be written as UTF-8, found "):
            use("daily-\udcff")


def test_a_path_with_nul_is_refused() -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match=r"it holds U\+0000"):
            use("a\0b")


def test_a_url_in_pathlib_is_refused() -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match="pathlib makes one slash of two: write it as a text"):
            use(Path("s3://bucket/savepoints/a"))


def test_a_future_in_place_of_its_path_says_how_to_get_the_path() -> None:
    future: Any = JobFuture(ActorFuture(), "the savepoint")
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match=r"wanted a path, found the future of one: write `\.result\(\)`"):
            use(future)


def test_the_usual_folder_is_none() -> None:
    assert target_folder(None) is None


@pytest.mark.parametrize("checkpoint_dir", [None, "checkpoints"])
@pytest.mark.parametrize("written", ["{folder}/nope", "nope"])
def test_a_savepoint_that_is_nowhere_is_said_to_be(
    written: str, checkpoint_dir: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = StreamEnvironment(checkpoint_dir=checkpoint_dir)
    env.from_collection([1]).collect()
    text = rf"cannot be started from {written.format(folder=tmp_path)}: .*{tmp_path}/nope"
    with DebugCluster() as cluster, pytest.raises(CannotRestore, match=text):
        cluster.submit(env, from_savepoint=written.format(folder=tmp_path))


def test_a_file_that_is_no_savepoint_is_said_to_be_a_file(tmp_path: Path) -> None:
    (written := tmp_path / "savepoint.txt").write_text("x")
    env = StreamEnvironment()
    env.from_collection([1]).collect()
    text = f"started from {written}: {written} is a file, and neither a savepoint nor a checkpoint: give the path that"
    with DebugCluster() as cluster, pytest.raises(CannotRestore, match=text):
        cluster.submit(env, from_savepoint=written)


def test_a_folder_that_is_no_savepoint_is_said_to_be_none(tmp_path: Path) -> None:
    env = StreamEnvironment()
    env.from_collection([1]).collect()
    text = (
        f"started from {tmp_path}: {tmp_path} is a folder and neither a savepoint nor a checkpoint: give the path that"
    )
    with DebugCluster() as cluster, pytest.raises(CannotRestore, match=text):
        cluster.submit(env, from_savepoint=tmp_path)


def test_a_savepoint_outside_of_the_jobs_folders_is_said_to_be_there(tmp_path: Path) -> None:
    (written := tmp_path / "savepoint-job-1-abcd").write_text("x")
    env = StreamEnvironment(checkpoint_dir=str(tmp_path / "other"))
    env.from_collection([1]).collect()
    text = (
        f"started from {written}: it is there, but outside .* give the job the checkpoint_dir of the one that took it"
    )
    with DebugCluster() as cluster, pytest.raises(CannotRestore, match=text):
        cluster.submit(env, from_savepoint=written)
