"""Campaigns: many histories, counted alike whatever runs them; and the watchdog over each of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest

from understudy.runtime.simulation.histories import verdict
from understudy.runtime.simulation.histories.broadcast_topologies import BROADCAST
from understudy.runtime.simulation.histories.campaign import Figures, Plan, run_campaign
from understudy.runtime.simulation.histories.catalogue import CATALOGUE
from understudy.runtime.simulation.histories.history import Outcome, run_history
from understudy.runtime.simulation.histories.increment_topologies import INCREMENTS
from understudy.runtime.simulation.histories.ledger_topologies import LEDGERS
from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.verdict import CRASHED, judge, replay
from understudy.runtime.simulation.histories.watchdog import HUNG

REAL_TIME = ("seconds", "histories_per_s", "speedup")


def counted(figures: Figures) -> dict[str, Any]:
    return {name: value for name, value in figures.as_json().items() if name not in REAL_TIME}


def crash_at(seeds: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, *args: Any) -> Outcome:
        if scenario.seed in seeds:
            raise RuntimeError(f"no luck with {scenario.seed}\nmore of it")
        return run_history(scenario, *args)

    monkeypatch.setattr(verdict, "run_history", run)


def test_the_figures_add_up() -> None:
    figures = run_campaign(Plan(0, 12, stop_after=None))
    told = figures.as_json()
    assert told["histories"] == sum(told["by_status"].values()) == sum(told["by_topology"].values()) == 12
    assert told["violations"] == len(figures.failed) == 0
    assert told["virtual_hours"] > 12 * 30 / 3600
    assert told["checkpoints"] > 12
    assert told["speedup"] > 1


def test_figures_do_not_depend_on_the_number_of_processes() -> None:
    assert counted(run_campaign(Plan(40, 10, processes=2))) == counted(run_campaign(Plan(40, 10)))


def test_histories_do_not_depend_on_what_ran_before() -> None:
    alone = judge(standard_history(3))
    run_campaign(Plan(0, 3))
    assert judge(standard_history(3)) == alone


def test_named_topologies_take_turns() -> None:
    plan = Plan(10, 4, ("chain", "keyed"))
    assert [plan.scenario(seed).topology for seed in range(10, 14)] == ["chain", "keyed", "chain", "keyed"]
    by_name_alone = {*LEDGERS, *INCREMENTS, *BROADCAST}  # among the others they would make every seed another history
    assert {Plan(0, 1_000).scenario(seed).topology for seed in range(1_000)} == set(CATALOGUE) - by_name_alone


def test_a_crash_is_a_violation_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    crash_at({2}, monkeypatch)
    figures = run_campaign(Plan(0, 4, ("chain",), stop_after=None))
    assert (figures.histories, figures.violations, figures.by_status[CRASHED]) == (4, 1, 1)
    (failed,) = figures.failed
    assert str(failed.broken) == "crash: RuntimeError: no luck with 2"
    assert failed.symptom == "crash: RuntimeError"
    assert "in run\n" in failed.traceback


@pytest.mark.parametrize(("stop_after", "histories"), [(1, 2), (2, 4), (None, 6)])
def test_a_campaign_ends_after_so_many_failed_histories(
    stop_after: int | None, histories: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_at({1, 3, 5}, monkeypatch)
    assert run_campaign(Plan(0, 6, ("chain",), stop_after=stop_after)).histories == histories


def test_somebody_may_look_on() -> None:
    seen: list[int] = []
    run_campaign(Plan(0, 3, ("chain",)), told=lambda figures: seen.append(figures.histories))
    assert seen == [1, 2, 3]


def test_a_replay_gives_the_same_verdict_and_all_that_happened() -> None:
    told, trace = replay(standard_history(4))
    assert told == judge(standard_history(4))
    assert trace.entries[0][2] == "process started"


def test_a_history_is_the_same_in_another_interpreter() -> None:
    """With another hash seed than this one, which is random; two others are compared in test_determinism.py."""
    program = (
        "import hashlib, logging; logging.disable(logging.CRITICAL)\n"
        "from understudy.runtime.simulation.histories.verdict import replay\n"
        "from understudy.runtime.simulation.histories.mix import standard_history\n"
        "print(hashlib.sha256('\\n'.join(replay(standard_history(3))[1].lines()).encode()).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    text = "\n".join(replay(standard_history(3))[1].lines())
    assert done.stdout.strip() == hashlib.sha256(text.encode()).hexdigest()


def test_the_watchdog_names_what_hangs_and_shows_where() -> None:
    program = (
        "from understudy.runtime.simulation.histories.watchdog import Watchdog\n"
        "def hang():\n"
        "    while True: pass\n"
        "with Watchdog(0.3) as watchdog, watchdog.watching('seed 7'):\n"
        "    hang()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == HUNG
    assert "seed 7 has not ended after 0.3 s" in done.stderr
    assert "in hang" in done.stderr
