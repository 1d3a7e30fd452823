"""The logs of inlets: which segments go, and logs that are away or have rotted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from understudy.messages import CheckpointId
from understudy.runtime.connectors import InletLogDamaged, to_payload
from understudy.state import CheckpointStorage, UnreachableRoot

from .stage import Stage, numbers


def test_segments_go_when_no_checkpoint_needs_them_and_a_gap_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    offsets = []
    for number in range(1, 5):
        stage.sent(numbers("a", number, number))
        stage.source.on_checkpoint(CheckpointId(number))
        offsets.append(stage.source.offset())
        stage.settle()
    stage.emitted()
    stage.source._forget_before(CheckpointId(3))
    stage.settle()
    assert Stage(tmp_path, attempt=1, offset=offsets[2]).emitted() == [1, 2, 3, 4]
    older = Stage(tmp_path, attempt=2, offset=offsets[3] | {"ready": to_payload([])})
    assert older.emitted() == []
    left = {path.name[-8:] for path in (tmp_path / "job-a" / "inlets" / "operator" / "0").glob("00000001-*")}
    assert "00000003" in left
    assert not {"00000001", "00000002"} & left
    with pytest.raises(InletLogDamaged, match="holds record 3 next, wanted 2"):
        Stage(tmp_path, attempt=3, offset=offsets[0] | {"ready": to_payload([])})


@pytest.mark.parametrize("is_new_process", [True, False])
def test_an_empty_folder_in_place_of_the_volume_is_not_taken_for_an_empty_log(
    tmp_path: Path, is_new_process: bool
) -> None:
    """What was acknowledged, and stands in the log alone, would be lost without a word."""
    root = tmp_path / "checkpoints"
    CheckpointStorage(str(root)).check()
    stage = Stage(root)
    offset = stage.source.offset()
    stage.sent(numbers("a", 1, 2))
    again = Stage(root, attempt=1, offset=offset, settled=False)
    root.rename(tmp_path / "volume")
    root.mkdir()
    if is_new_process:
        access = again.source.context.task
        assert access is not None
        storage = CheckpointStorage(str(root), has_mark=True)
        again.source.context = replace(again.source.context, task=replace(access, storage=storage))
        again.source.open()
        again.source.seek(offset)
    again.source._read_on()
    with pytest.raises(UnreachableRoot):
        again.settle()
    root.rmdir()
    (tmp_path / "volume").rename(root)
    assert Stage(root, attempt=2, offset=offset).emitted() == [1, 2]


def test_logs_of_a_job_before_whose_directory_is_away_are_not_taken_for_empty(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "old")
    offset = stage.source.offset()
    stage.sent(numbers("a", 1, 2))
    offset["logs"] = [[str(tmp_path / "old"), *offset["logs"][0][1:]]]
    (tmp_path / "old").rename(tmp_path / "away")
    (tmp_path / "new").mkdir()
    with pytest.raises(UnreachableRoot):
        Stage(tmp_path / "new", job="job-b", offset=offset)
    (tmp_path / "away").rename(tmp_path / "old")
    assert Stage(tmp_path / "new", job="job-b", offset=offset).emitted() == [1, 2]


def test_a_log_that_has_rotted_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in (1, 2, 3):
        stage.sent(numbers("a", number, number))
    (path,) = (tmp_path / "job-a" / "inlets" / "operator" / "0").glob("00000001-*1")
    data = path.read_bytes()
    path.write_bytes(data.replace(numbers("a", 2, 2).data, b"?", 1))
    with pytest.raises(
        InletLogDamaged,
        match=r"^inlet 'operator': .*a whole entry at byte .*from a savepoint.*edit\(\).write\(check.*last_num",
    ):
        Stage(tmp_path, attempt=1)
