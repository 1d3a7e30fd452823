"""The pytest plugin: its options, its fixture, its summary, and what it costs. Each run is a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ....prepared import PATIENCE_SECONDS

pytestmark = pytest.mark.processes

SEEDS = """
def test_seed(simulated_seed):
    assert simulated_seed != 2, "bad luck"
"""

JOB = """
from understudy import StreamEnvironment
from understudy.testing import assert_exactly_once

def build():
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(6)).collect(name="out")
    return env

def test_it_survives():
    survived = assert_exactly_once(build)
    print("survived", survived.histories)
"""


def _pytest(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rP", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_a_test_takes_each_seed_and_a_failure_says_how_to_run_it_again(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SEEDS, "--simulate-seeds", "4")
    assert "simulated 4 histories, 1 violation\n" in done.stdout
    assert "1 failed, 3 passed" in done.stdout
    assert "to run it again: --simulate-seed 2" in done.stdout
    assert "test_seed[seed 2]" in done.stdout


def test_one_seed_is_replayed(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SEEDS, "--simulate-seed", "17", "-v")
    assert "simulated 1 history, 0 violations\n" in done.stdout
    assert "test_seed[seed 17]" in done.stdout


def test_the_figures_of_all_workers_are_added_up(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SEEDS, "--simulate-seeds", "5", "-n", "2")
    assert "simulated 5 histories, 1 violation\n" in done.stdout


def test_an_assertion_runs_as_many_histories_as_the_option_says(tmp_path: Path) -> None:
    done = _pytest(tmp_path, JOB, "--simulate-seeds", "3")
    assert "survived 3\n" in done.stdout
    assert "simulated 3 histories, 0 violations\n" in done.stdout


def test_tests_that_simulate_nothing_get_no_summary(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "def test_nothing(): pass\n")
    assert done.returncode == 0
    assert "simulated" not in done.stdout


def test_an_assertion_runs_as_many_histories_as_fit_into_the_minutes(tmp_path: Path) -> None:
    done = _pytest(tmp_path, JOB, "--simulate-minutes", "0.0001")
    assert "survived 1\n" in done.stdout
    assert "simulated 1 history, 0 violations\n" in done.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--simulate-seeds", "0"), "wanted at least 1, found 0"),
        (("--simulate-minutes", "0"), "wanted a number above 0, found 0"),
        (("--simulate-minutes", "1", "--simulate-seeds", "5"), "leave out one or the other"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(tmp_path: Path, options: tuple[str, ...], problem: str) -> None:
    done = _pytest(tmp_path, SEEDS, *options)
    assert done.returncode != 0
    assert problem in done.stderr + done.stdout


def test_the_plugin_imports_nothing_heavy() -> None:
    program = (
        "import sys, understudy.runtime.simulation.trials.pytest_plugin\n"
        "print([name for name in ('pyarrow', 'numpy', 'pykka', 'zmq', 'hypothesis', 'pyspark', 'cloudpickle')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
