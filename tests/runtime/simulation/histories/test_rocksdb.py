"""Histories with state in RocksDB: nothing is lost or doubled, and one seed is one history.

RocksDB's working files are on the real disk, where nothing happens to them; its checkpoints go to the simulated one.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from understudy.runtime.simulation.histories.history import run_history
from understudy.runtime.simulation.histories.scenario import Scenario

FEW, MANY = range(4), range(4, 150)
TOPOLOGIES = ("states", "reminders")


def on_rocksdb(seed: int, topology: str) -> Scenario:
    scenario = Scenario.of(seed, topology)
    return replace(scenario, workload=replace(scenario.workload, state_backend="rocksdb"))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)])
def test_a_history_keeps_its_promises(seed: int, topology: str) -> None:
    outcome = run_history(on_rocksdb(seed, topology))
    assert outcome.violations == (), on_rocksdb(seed, topology).as_python()


def test_one_seed_is_one_history() -> None:
    """But for the checksums of files: RocksDB writes an id and the time into them, which change no length."""
    one, other = (
        [
            re.sub(r"checksum=\d+|offsets={-1: \(\d+, \d+, \d+\)}", "", line)
            for line in run_history(scenario).trace.lines()
        ]
        for scenario in [on_rocksdb(3, "states")] * 2
    )
    assert one == other
