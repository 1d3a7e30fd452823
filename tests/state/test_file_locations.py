"""File locations: paths of this machine, URLs, and chains of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from understudy.state import CheckpointStorage
from understudy.state.file_locations import absolute, file_system_at, is_url, protocol_of


@pytest.mark.parametrize("path", ["/data/orders::eu", "/data/a::b::c", "orders::eu", "/data/memory::x"])
def test_a_path_of_this_machine_is_taken_as_it_stands(path: str) -> None:
    files, found = file_system_at(path)
    assert not is_url(path)
    assert protocol_of(path) == "file"
    assert files.protocol[0] == "file"
    assert found == str(Path(path).absolute())


def test_a_path_is_made_absolute_and_a_url_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/of-a-user")
    assert absolute("orders") == f"{Path.cwd()}/orders"
    assert absolute("~/orders") == "/home/of-a-user/orders"
    for location in ("/data/orders", "s3://bucket/~/orders", "memory://orders"):
        assert absolute(location) == location


def test_a_url_says_its_protocol() -> None:
    files, found = file_system_at("memory://orders/eu")
    assert (files.protocol, found, protocol_of("memory://orders/eu")) == ("memory", "/orders/eu", "memory")


def test_a_chain_is_opened(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("here")
    for chain in (f"simplecache::file://{tmp_path}/one.txt", f"dir://one.txt::{tmp_path}"):
        files, found = file_system_at(chain)
        with files.open(found, "rt") as file:
            assert file.read() == "here"


@pytest.mark.parametrize("url", ["memory://orders::eu", "memory://bucket/orders::eu-1", "s3://bucket/a::b"])
def test_a_name_in_a_url_that_would_be_cut_is_refused(url: str) -> None:
    last = url.rpartition("::")[2]
    with pytest.raises(ValueError, match=f"'::' chains file systems in a URL.*there is none {last!r}.*another name"):
        file_system_at(url)


def test_checkpoints_of_two_folders_with_the_same_beginning_are_apart(tmp_path: Path) -> None:
    eu, us = (CheckpointStorage(f"{tmp_path}/orders::{each}") for each in ("eu", "us"))
    eu.check()
    us.check()
    assert (eu.root, us.root) == (f"{tmp_path}/orders::eu", f"{tmp_path}/orders::us")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["orders::eu", "orders::us"]
    assert eu.resolve(f"{tmp_path}/orders::eu/job/chk-1") == "job/chk-1"


@pytest.mark.parametrize("found", [None, 7, b"out"], ids=repr)
def test_what_is_no_path_is_named(found: Any) -> None:
    with pytest.raises(TypeError, match="wanted a path or URL, found"):
        absolute(found)


def test_a_path_of_pathlib_is_its_text(tmp_path: Path) -> None:
    assert absolute(tmp_path / "out") == f"{tmp_path}/out"
    assert absolute(Path("~/out")) == os.path.expanduser("~/out")
    assert absolute(Path("x:/out")) == os.path.abspath("x:/out")


@pytest.mark.parametrize("url", ["s3://bucket/out", "memory://out", "file:///tmp/out"])
def test_a_url_in_pathlib_is_refused_as_it_would_be_a_folder_here(url: str) -> None:
    with pytest.raises(TypeError, match="pathlib makes one slash of two: write it as a text"):
        absolute(Path(url))
