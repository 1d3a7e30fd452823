"""Two jobs and one output folder: the newer takes it over, and the older one commits nothing there any more."""

from __future__ import annotations

import json
import posixpath
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import JobId
from understudy.runtime.connectors import FileSink, OutputTakenOver
from understudy.runtime.system.this_process import _started, this_process
from understudy.state import DurableFiles

from ....systems.s3 import S3Server
from ..harness import Running, Snapshot, rescaled

pytestmark = pytest.mark.every_run


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path / "out")
    server: S3Server = request.getfixturevalue("s3")
    return f"s3://{server.bucket()}/some/folder"


def start(folder: str, snapshot: Snapshot | None = None, *, shared: bool = False, **where: Any) -> Running[FileSink]:
    return Running(FileSink(folder, "jsonl", shared=shared), snapshot, **where)


def visible(folder: str) -> list[Any]:
    files, root = DurableFiles.at(folder)
    names = [name for name in files.names(root) if name.startswith("part-")]
    lines = [line for name in names for line in files.read(posixpath.join(root, name)).splitlines()]
    return sorted(json.loads(line)["value"] for line in lines)


def write(running: Running[FileSink], record: str, checkpoint_id: int) -> Snapshot:
    running.take(record)
    snapshot = running.checkpoint(checkpoint_id)
    running.complete(checkpoint_id)
    return snapshot


def test_one_savepoint_started_twice_gives_each_record_once(folder: str) -> None:
    """What the first of the two commits before the other begins is there; nothing of it comes later."""
    origin = start(folder, job="job-a")
    savepoint = write(origin, "a", 1)
    first = start(folder, savepoint, job="job-b")
    second = start(folder, savepoint, job="job-c")
    first.take("b")
    first.checkpoint(2)
    with pytest.raises(OutputTakenOver, match=r"job job-c.*sink 'operator'.*job-b"):
        first.complete(2)
    write(second, "b", 2)
    assert visible(folder) == ["a", "b"]


def test_a_job_that_lost_its_folder_does_not_get_it_back_by_a_restart(folder: str) -> None:
    first = start(folder, job="job-a")
    snapshot = write(first, "a", 1)
    start(folder, job="job-b")
    for restored in (snapshot, None):
        with pytest.raises(OutputTakenOver, match="job job-b"):
            start(folder, restored, job="job-a", attempt=1)


def test_an_older_writer_that_ends_removes_nothing_of_the_newer_one(folder: str) -> None:
    savepoint = write(start(folder, job="job-a"), "a", 1)
    older = start(folder, savepoint, job="job-b", attempt=3)
    newer = start(folder, savepoint, job="job-c")
    newer.take("c")
    newer.checkpoint(2)
    older.operator.close()
    newer.complete(2)
    assert visible(folder) == ["a", "c"]


def test_one_that_is_restarted_rescaled_or_restored_when_the_other_is_over_goes_on(folder: str) -> None:
    subtasks = [start(folder, job="job-a", subtask=index, parallelism=2) for index in (0, 1)]
    snapshots = [write(running, f"a{index}", 1) for index, running in enumerate(subtasks)]
    again = [start(folder, each, job="job-a", subtask=i, parallelism=2, attempt=1) for i, each in enumerate(snapshots)]
    snapshots = [write(running, f"b{index}", 2) for index, running in enumerate(again)]
    for job, parallelism in (("job-b", 3), ("job-c", 1)):
        shares = rescaled(snapshots, parallelism)
        restored = [start(folder, each, job=job, subtask=i, parallelism=parallelism) for i, each in enumerate(shares)]
        snapshots = [write(running, f"{job} {index}", 3) for index, running in enumerate(restored)]
    fresh = start(folder, job="job-d")
    write(fresh, "d", 1)
    assert visible(folder) == sorted(["a0", "a1", "b0", "b1", "job-b 0", "job-b 1", "job-b 2", "job-c 0", "d"])


def test_jobs_that_say_so_share_a_folder(folder: str) -> None:
    one, two = (start(folder, job=job, shared=True) for job in ("job-a", "job-b"))
    write(one, "a", 1)
    write(two, "b", 1)
    write(one, "c", 2)
    assert visible(folder) == ["a", "b", "c"]


def test_of_two_jobs_that_begin_at_once_one_goes_on(tmp_path: Path) -> None:
    """Both have looked before either has claimed."""
    from understudy.runtime.connectors.files.folder_owner import FolderOwner

    class Slow(FolderOwner):
        def _claims(self) -> list[tuple[int, str]]:
            return waiting.pop() if waiting else super()._claims()

    folder, taken = str(tmp_path), []
    for job in ("job-a", "job-b", "job-c"):
        waiting: list[list[tuple[int, str]]] = [[]]
        try:
            Slow(folder, job, "out").take(0)
        except OutputTakenOver:
            continue
        taken.append(FolderOwner(folder, job, "out"))
    alive = []
    for each in taken:
        try:
            each.check()
        except OutputTakenOver:
            continue
        alive.append(each)
    assert len(alive) == 1


def test_the_folder_keeps_few_claims(tmp_path: Path) -> None:
    for number in range(230):
        start(str(tmp_path), job=f"job-{number}")
    names = [path.name for path in (tmp_path / ".understudy-owner").iterdir()]
    assert len(names) <= 101
    assert max(names).startswith("00000230-")


def test_a_folder_that_was_emptied_by_hand_belongs_to_whoever_writes(tmp_path: Path) -> None:
    running = start(str(tmp_path))
    write(running, "a", 1)
    for path in (tmp_path / ".understudy-owner").iterdir():
        path.unlink()
    snapshot = write(running, "b", 2)
    write(start(str(tmp_path), snapshot, attempt=1), "c", 3)
    assert visible(str(tmp_path)) == ["a", "b", "c"]


def sinks(folders: list[Path], **where: Any) -> list[Running[FileSink]]:
    """The subtasks of one sink: each machine has another folder of the name, unless it is mounted on all."""
    running = [
        start(str(folder), parallelism=len(folders), subtask=index, **where) for index, folder in enumerate(folders)
    ]
    for each in running:
        each.take("a")
        each.checkpoint(1)
    for each in running:
        each.complete(1)
    return running


def test_a_folder_that_not_all_machines_share_is_named_at_the_first_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    sinks([here, there, here, there])
    (said,) = caplog.messages
    assert said.startswith(f"sink 'operator': 2 of its 4 subtasks (1, 3) write to a folder {here} that is not the one")
    assert "a folder that all machines share" in said


def test_a_folder_that_all_share_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sinks([tmp_path] * 3)
    sinks([tmp_path] * 2, job="job-b")
    sinks([tmp_path] * 2, job="job-c", shared=True)
    assert caplog.messages == []


def test_signs_go_with_the_claim_of_their_job(tmp_path: Path) -> None:
    sinks([tmp_path] * 2, job="job-0")
    for number in range(1, 102):
        start(str(tmp_path), job=f"job-{number}")
    assert not [path for path in (tmp_path / ".understudy-owner").iterdir() if path.name.startswith(".seat")]


def test_one_place_has_one_url_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for path in ("out", "out/", "x/../out", "link"):
        for url in (f"{tmp_path}/{path}", f"file://{tmp_path}/{path}"):
            assert FileSink(url)._owned_place == f"file://{tmp_path.resolve()}/out"
    assert {FileSink(each)._owned_place for each in ("s3://b/out", "s3a://b/out/", "s3://b//out")} == {"s3://b/out"}
    assert FileSink("sim://out")._owned_place == "sim://out"
    assert FileSink("out", shared=True)._owned_place == ""


def test_a_claim_that_was_cut_off_still_names_its_job_by_its_file(tmp_path: Path) -> None:
    older = start(str(tmp_path))
    older.take("a")
    older.checkpoint(1)
    start(str(tmp_path), job="job-b")
    newest = max((tmp_path / ".understudy-owner").iterdir())
    newest.write_bytes(b'{"job_')
    with pytest.raises(OutputTakenOver, match=f"its claim is .*{newest.name}, which does not say which"):
        older.complete(1)


def test_who_submits_learns_of_a_job_in_the_folder_whose_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of one that it goes on from, or that is its own, or that has a shared folder, or whose process is gone."""
    folder, patched = str(tmp_path), "understudy.runtime.connectors.files.folder_owner"
    assert FileSink(folder).rival(JobId("job-b")) == ""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        beside = replace(this_process(), pid=other.pid, started=_started(other.pid) or "")
        with monkeypatch.context() as patch:
            patch.setattr(f"{patched}.this_process", lambda: beside)
            start(folder, job="job-a")
        said = FileSink(folder).rival(JobId("job-b"))
        assert said.startswith("job job-a (sink 'operator') has begun to write there at ")
        assert said.endswith(f"in process {other.pid} on {socket.gethostname()}")
        assert FileSink(folder).rival(JobId("job-a")) == ""
        assert FileSink(folder, shared=True).rival(JobId("job-b")) == ""
        assert FileSink(folder).rival(JobId("job-b"), [JobId("job-a")]) == ""
    assert FileSink(folder).rival(JobId("job-b")) == ""
    start(folder, job="job-b")
    assert FileSink(folder).rival(JobId("job-c")) == "", "a job that ran in this very process"


def test_a_claim_of_an_earlier_build_names_no_process(tmp_path: Path) -> None:
    start(str(tmp_path), job="job-a")
    (claim,) = (tmp_path / ".understudy-owner").iterdir()
    claim.write_text(json.dumps({"job_id": "job-a", "sink": "out", "since_ms": 0}))
    assert FileSink(str(tmp_path)).rival(JobId("job-b")) == ""
