"""One seed is one history, to the byte: in one process, in another one, and without a look at the real world."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil
import pytest

import understudy
from understudy.runtime.simulation.histories.history import run_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import TOPOLOGIES

from ....prepared import PATIENCE_SECONDS

SEEDS = range(2)
"""Of each topology."""

ROOT = Path(__file__).resolve().parents[4]


def scenarios() -> list[Scenario]:
    return [Scenario.of(seed, name) for name in sorted(TOPOLOGIES) for seed in SEEDS]


def digest(scenario: Scenario) -> str:
    """Of every line of the trace, and of the verdict."""
    outcome = run_history(scenario)
    told = hashlib.sha256()
    for line in outcome.trace.lines():
        told.update(line.encode() + b"\n")
    told.update(f"{outcome.status} {outcome.violations} {outcome.virtual_ms!r} {outcome.faults}".encode())
    return f"{scenario.topology} {scenario.seed} {told.hexdigest()}"


@lru_cache
def known_digest(scenario: Scenario) -> str:
    """What it was the first time in this process."""
    return digest(scenario)


def digests() -> list[str]:
    return [digest(scenario) for scenario in scenarios()]


def first_difference(scenario: Scenario) -> str:
    one, other = (list(run_history(scenario).trace.lines()) for _ in range(2))
    pairs = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    return "\n".join(pairs[0]) if pairs else f"{len(one)} and {len(other)} lines"


def test_the_same_scenario_twice_in_one_process() -> None:
    """The second time in the other order, with other garbage around."""
    first = {scenario: known_digest(scenario) for scenario in scenarios()}
    gc.collect()
    for scenario in reversed(scenarios()):
        assert digest(scenario) == first[scenario], first_difference(scenario)


@pytest.mark.processes
def test_in_two_processes_with_different_hash_seeds() -> None:
    """What is kept in a set must not be gone through in its order."""
    program = f"import {__name__} as here; print(*here.digests(), sep='\\n')"
    outputs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert len(outputs[0]) == len(TOPOLOGIES) * len(SEEDS)
    assert outputs[0] == outputs[1]


def test_wherever_the_package_lies(tmp_path: Path) -> None:
    """In these histories tracebacks go over slow links, which take longer for longer messages."""
    seeds = (10000035, 10000141)
    program = f"import {__name__} as here; print(*(here.digest(here.Scenario.of(seed)) for seed in {seeds}), sep='\\n')"
    outputs = []
    for folder in ("s", "a folder whose name is a good deal longer"):
        source = tmp_path / folder
        source.mkdir()
        (source / "understudy").symlink_to(Path(understudy.__file__).parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert len(outputs[0]) == len(seeds)
    assert outputs[0] == outputs[1]


def test_another_seed_is_another_history() -> None:
    assert len({known_digest(scenario).rpartition(" ")[2] for scenario in scenarios()}) == len(scenarios())


def test_nothing_asks_the_real_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wall clock, no monotonic clock, no random numbers but the world's, no thread, no file, no socket."""
    scenarios_ = [Scenario.of(seed) for seed in range(8)]
    for scenario in scenarios_:
        run_history(scenario)  # what is imported or computed once is
    for module, names in (
        (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")),
        (random, ("random", "randint", "choice", "shuffle", "uniform", "getrandbits")),
        (os, ("urandom", "getrandom", "open", "fsync")),
        (uuid, ("uuid1", "uuid4")),
        (threading.Thread, ("start",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, _forbidden(name, getattr(module, name)))
    me = psutil.Process()
    before = threading.active_count(), me.num_fds()
    for scenario in scenarios_:
        run_history(scenario)
    assert (threading.active_count(), me.num_fds()) == before


def _forbidden(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """For all but logging, which stamps records, Pykka, which computes deadlines that it does not need, and psutil."""

    def call(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_globals["__name__"].partition(".")[0]
        if caller in ("logging", "pykka", "psutil", "_pytest"):
            return function(*args, **kwargs)
        raise AssertionError(f"{name} was called by {sys._getframe(1).f_code}")

    return call
