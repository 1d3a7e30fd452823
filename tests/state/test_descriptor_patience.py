"""A moment in which a process has no descriptor left, as connections took all of them, fails no checkpoint."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fsspec.implementations.local import LocalFileSystem

from understudy.state import DurableFiles, descriptor_patience


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """All descriptors that this process may have: some twenty at the least, whichever others are open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    try:
        held += [os.dup(held[0]) for _ in range(20)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1, before[1]))
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(held[0]))
        yield held
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in held:
            os.close(descriptor)


def test_a_file_is_written_once_some_are_given_back(
    tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_back(_seconds: float) -> None:
        for _ in range(3):
            os.close(taken.pop())

    monkeypatch.setattr(descriptor_patience, "time", SimpleNamespace(sleep=give_back))
    files = DurableFiles(LocalFileSystem())
    files.write(str(tmp_path / "metadata"), [b"one"])
    files.sync_folder(str(tmp_path))
    assert (tmp_path / "metadata").read_bytes() == b"one"
    assert files.opened_size_bytes(str(tmp_path / "metadata")) == 3


@pytest.mark.parametrize("opens", [DurableFiles.sync_folder, DurableFiles.opened_size_bytes])
def test_if_there_is_none_for_longer_it_fails(
    opens: Callable[[DurableFiles, str], object], tmp_path: Path, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(descriptor_patience, "time", SimpleNamespace(sleep=pauses.append))
    with pytest.raises(OSError, match="Too many open files") as raised:
        opens(DurableFiles(LocalFileSystem()), str(tmp_path))
    assert raised.value.errno == errno.EMFILE
    assert pauses == [0.1, 0.2, 0.4, 0.8]
