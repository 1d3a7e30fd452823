"""A savepoint's path, as a user may write it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from understudy import ActorFuture, JobFuture
from understudy.runtime.api.errors import InvalidSetting
from understudy.runtime.clusters.paths import savepoint_at, target_folder


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


@pytest.mark.parametrize("path", ["daily\n", "a\tb", "a\x7f", "a\0b"], ids=repr)
def test_a_line_break_in_a_path_is_refused(path: str) -> None:
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match="without line breaks and control characters, found "):
            use(path)


def test_a_future_in_place_of_its_path_says_how_to_get_the_path() -> None:
    future: Any = JobFuture(ActorFuture(), "the savepoint")
    for use in (savepoint_at, target_folder):
        with pytest.raises(InvalidSetting, match=r"wanted a path, found the future of one: write `\.result\(\)`"):
            use(future)


def test_the_usual_folder_is_none() -> None:
    assert target_folder(None) is None
