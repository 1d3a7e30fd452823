"""Whether committed output is expected so far: the same answer as from all of it, after each step."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from understudy.messages import CheckpointId, pack_plain
from understudy.runtime.simulation.histories.output_so_far import OutputSoFar
from understudy.runtime.simulation.world.disk import SimulatedDisk

DIRECTORY = "sim://out"
EXPECTED = [1, 1, 2, 3, 4, 5]


def commit(disk: SimulatedDisk, checkpoint: int, *records: Any) -> str:
    path = f"/out/part-sink-00000-{checkpoint:010}-0123456789abcdef-0-attempt.records"
    data = pack_plain(list(records))
    disk.open(path).write(len(data).to_bytes(4, "big") + data)
    return path


def output() -> tuple[SimulatedDisk, OutputSoFar]:
    disk = SimulatedDisk()
    disk.mkdir("/out")
    return disk, OutputSoFar(disk, EXPECTED)


def test_what_is_expected_may_come_in_pieces() -> None:
    disk, so_far = output()
    assert so_far.is_expected([(DIRECTORY, None)])
    for checkpoint, records in enumerate(([1, 2], [], [1, 3], [5, 4])):
        commit(disk, checkpoint, *records)
        assert so_far.is_expected([(DIRECTORY, None)])


@pytest.mark.parametrize("extra", [1, 6, "one"])
def test_one_record_too_many_is_seen_at_once_and_ever_after(extra: object) -> None:
    disk, so_far = output()
    commit(disk, 1, 1, 1)
    assert so_far.is_expected([(DIRECTORY, None)])
    commit(disk, 2, extra)
    assert not so_far.is_expected([(DIRECTORY, None)])
    assert not so_far.is_expected([(DIRECTORY, None)])
    assert so_far.is_expected([(DIRECTORY, CheckpointId(1))])


def test_a_file_that_is_cut_off_is_not_expected() -> None:
    disk, so_far = output()
    path = commit(disk, 1, 1, 2)
    assert so_far.is_expected([(DIRECTORY, None)])
    disk.rot(path, 5)
    assert not so_far.is_expected([(DIRECTORY, None)])


@pytest.mark.parametrize("seed", range(20))
def test_it_is_as_if_all_were_counted_each_time(seed: int) -> None:
    """Files come, go and change; the limit moves."""
    disk, so_far = output()
    chance, there = Random(seed), dict[int, list[int]]()
    for _ in range(40):
        checkpoint = chance.randrange(6)
        if there.pop(checkpoint, None) is not None and chance.random() < 0.5:
            disk.remove(f"/out/part-sink-00000-{checkpoint:010}-0123456789abcdef-0-attempt.records")
        else:
            there[checkpoint] = [chance.randint(1, 6) for _ in range(chance.randint(0, 2))]
            commit(disk, checkpoint, *there[checkpoint])
        until = chance.choice([None, CheckpointId(chance.randrange(6))])
        counted = Counter(
            record for each, records in there.items() if until is None or each <= until for record in records
        )
        assert so_far.is_expected([(DIRECTORY, until)]) == (counted <= Counter(EXPECTED))
