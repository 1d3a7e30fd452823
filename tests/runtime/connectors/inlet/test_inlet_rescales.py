"""An inlet whose subtasks become more or fewer: each record of a log is taken once, by the subtask of its sender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.actors.operators.source import END, RecordedOffset, continue_source
from understudy.messages import CheckpointId, InletAnswer
from understudy.runtime.connectors.inlet import sender_numbers
from understudy.runtime.connectors.inlet.sender_numbers import MADE_UP

from .stage import Stage, numbers

SENDERS = [f"sender-{index}" for index in range(12)]


@pytest.mark.parametrize(("old", "new"), [(1, 3), (3, 2), (2, 1)])
def test_after_a_rescale_each_sender_belongs_to_one(tmp_path: Path, old: int, new: int) -> None:
    stages = [Stage(tmp_path, where=(index, old)) for index in range(old)]
    owner = {sender: next(stage for stage in stages if stage.source._is_own(sender)) for sender in SENDERS}
    for sender in SENDERS:
        owner[sender].sent(numbers(sender, 1, 3))
    offsets = [stage.source.offset() for stage in stages]
    for sender in SENDERS:
        owner[sender].sent(numbers(sender, 4, 5))
    successors = [Stage(tmp_path, where=(index, new), job="job-b", offsets=offsets) for index in range(new)]
    assert sorted(number for stage in successors for number in stage.emitted()) == sorted(
        [1, 2, 3, 4, 5] * len(SENDERS)
    )
    for sender in SENDERS:
        (own,) = (stage for stage in successors if stage.source._is_own(sender))
        assert own.sent(numbers(sender, 5, 6)) == InletAnswer({})
        assert own.emitted() == [6]


def with_a_log(folder: Path, parallelism: int) -> list[dict[str, Any]]:
    """Offsets behind which each of the senders has two records in one segment, and two in the next."""
    stages = [Stage(folder, where=(index, parallelism)) for index in range(parallelism)]
    offsets = [stage.source.offset() for stage in stages]
    for first in (1, 3):
        for stage in stages:
            stage.sent(*(numbers(each, first, first + 1) for each in SENDERS if stage.source._is_own(each)))
            stage.source.on_checkpoint(CheckpointId(first))
            stage.settle()
    return offsets


@pytest.mark.parametrize("read", [(3, 1, 0), (0, 1, 3), (4, 5, 1), (2, 2, 2)])
def test_each_of_several_that_read_one_log_goes_on_at_its_own_place_after_another_rescale(
    tmp_path: Path, read: tuple[int, ...]
) -> None:
    """`read`: how often each has read on when the checkpoint is taken, as where the logs are long."""
    offsets = with_a_log(tmp_path, 2)
    offsets = [stage.source.offset() for stage in reading(tmp_path, "job-b", read, offsets)]
    last = [Stage(tmp_path, where=(index, 2), job="job-c", offsets=offsets) for index in range(2)]
    assert sorted(number for stage in last for number in stage.emitted()) == sorted([1, 2, 3, 4] * len(SENDERS))


@pytest.mark.parametrize("read", [(1, 0), (0, 1)])
def test_so_does_each_after_a_third_rescale(tmp_path: Path, read: tuple[int, ...]) -> None:
    """Each rescale finds the one log at two places, and knows whose it was at which."""
    offsets = with_a_log(tmp_path, 1)
    for job, counts in (("job-b", read), ("job-c", (0, 0, 0))):
        offsets = [stage.source.offset() for stage in reading(tmp_path, job, counts, offsets)]
    last = [Stage(tmp_path, where=(index, 2), job="job-d", offsets=offsets) for index in range(2)]
    assert sorted(number for stage in last for number in stage.emitted()) == sorted([1, 2, 3, 4] * len(SENDERS))


def reading(folder: Path, job: str, counts: tuple[int, ...], offsets: list[dict[str, Any]]) -> list[Stage]:
    """As many subtasks as counts, each of which has read on so often."""
    stages = [
        Stage(folder, where=(index, len(counts)), job=job, offsets=offsets, settled=False)
        for index in range(len(counts))
    ]
    for stage, count in zip(stages, counts, strict=True):
        for _ in range(count):
            stage.source._read_on()
            stage.aside.popleft()()
    return stages


def test_where_one_subtask_had_come_to_its_end_and_another_had_not_records_are_taken(tmp_path: Path) -> None:
    """A checkpoint of a job that was being stopped, and failed."""
    stages = [Stage(tmp_path, where=(index, 2)) for index in range(2)]
    stages[0].source._ends_by_itself()
    assert stages[0].source.poll() is END
    one = Stage(tmp_path, job="job-b", offsets=[stage.source.offset() for stage in stages])
    assert one.source.poll() is None
    assert one.sent(numbers("sender", 1, 1)) == InletAnswer({})


def test_made_up_names_of_several_subtasks_are_not_forgotten_before_their_logs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_numbers, "REMEMBERED", 3)
    stages = [Stage(tmp_path, where=(index, 2)) for index in range(2)]
    for stage in stages:
        names = [name for index in range(100) if stage.source._is_own(name := f"{MADE_UP}{index}")]
        stage.sent(*(numbers(name, 1, 1) for name in names))
        stage.emitted()
    offsets = [stage.source.offset() for stage in stages]
    for stage in stages:
        stage.sent(*(numbers(name, 2, 2) for name in stage.source.offset()["senders"]))
    one = Stage(tmp_path, job="job-b", offsets=offsets)
    assert one.emitted() == [2] * 6
    assert len(one.source.offset()["senders"]) == 3, "as many as ever are remembered from then on"


def test_another_max_parallelism_gives_senders_to_other_subtasks(tmp_path: Path) -> None:
    stages = [Stage(tmp_path, where=(index, 2)) for index in range(2)]
    for stage in stages:
        stage.sent(*(numbers(each, 1, 2) for each in SENDERS if stage.source._is_own(each)))
    recorded = [RecordedOffset(index, 2, stage.source.offset()) for index, stage in enumerate(stages)]
    for stage in stages:
        stage.sent(*(numbers(each, 3, 3) for each in SENDERS if stage.source._is_own(each)))
    others = [Stage(tmp_path, where=(index, 2), job="job-b", max_parallelism=60, settled=False) for index in range(2)]
    assert [[each for each in SENDERS if stage.source._is_own(each)] for stage in others] != [
        [each for each in SENDERS if stage.source._is_own(each)] for stage in stages
    ]
    for stage in others:
        continue_source(stage.source, recorded)
        stage.source._read_on()
        stage.settle()
    assert sorted(number for stage in others for number in stage.emitted()) == sorted([1, 2, 3] * len(SENDERS))
