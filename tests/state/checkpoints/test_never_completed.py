"""What checkpoints that never completed have left goes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.messages import CheckpointId, JobId
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.never_completed import delete_never_completed

JOB = JobId("job-1")
GONE = ["chk-3/map-0-a", "chk-9/map-1-a"]
KEPT = [
    "chk-4/_metadata",
    "chk-4/map-0-a",
    "chk-5/map-0-a",
    "chk-10/map-0-a",
    "chk-11/map-0-a",
    "inlets/orders/0/1",
    "inlets/chk-1x/0/1",
    "shared/3-map-0-a-f",
]


@pytest.mark.parametrize("url", ["{folder}", "memory://never-completed/{name}"])
def test_only_folders_before_a_checkpoint_that_have_no_metadata_go(url: str, tmp_path: Path) -> None:
    """A file of one that is needed stays, whoever needs it; and those of another job."""
    storage = CheckpointStorage(url.format(folder=tmp_path, name=tmp_path.name))
    for path in (*GONE, *KEPT):
        storage.write(f"{JOB}/{path}", b"x")
    storage.write("job-2/chk-3/map-0-a", b"x")
    delete_never_completed(storage, JOB, CheckpointId(10), {f"{JOB}/chk-5/map-0-a"})
    assert storage.list_files() == sorted([*(f"{JOB}/{path}" for path in KEPT), "job-2/chk-3/map-0-a"])
    delete_never_completed(storage, JobId("job-3"), CheckpointId(10), ())
