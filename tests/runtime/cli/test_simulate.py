"""`understudy simulate`: its exit codes, its reports, and what it offers to find out why a history fails."""

from __future__ import annotations

import json
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.runtime.cli import main
from understudy.runtime.simulation.histories import verdict
from understudy.runtime.simulation.histories.divergence import Divergence, divergence
from understudy.runtime.simulation.histories.history import Outcome, run_history
from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.watchdog import HUNG


def simulate(*arguments: object, answers: str = "") -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)], input=answers)


@pytest.fixture
def commits_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that commits with its snapshot, before anybody knows that the checkpoint completes."""
    on_checkpoint = TwoPhaseCommitSink.on_checkpoint

    def commit_too(self: Any, checkpoint_id: Any) -> None:
        on_checkpoint(self, checkpoint_id)
        self.on_checkpoint_complete(checkpoint_id)

    monkeypatch.setattr(TwoPhaseCommitSink, "on_checkpoint", commit_too)


# ---- campaigns


def test_good_histories_end_with_their_figures(tmp_path: Path) -> None:
    done = simulate("--seeds", 5, "--first-seed", 20, "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert "histories per s" in done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["first_seed"], report["seeds"], report["histories"], report["violations"]) == (20, 5, 5, 0)
    assert report["failing"] == []
    assert report["commit"]
    assert report["version"]


@pytest.mark.parametrize("processes", [1, 2])
def test_as_many_histories_run_as_fit_into_the_minutes(processes: int, tmp_path: Path) -> None:
    done = simulate("--minutes", 0.0001, "--processes", processes, "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["seeds"], report["minutes"], report["histories"]) == (None, 0.0001, 1)


def test_a_violation_is_told_with_all_that_is_needed_to_understand_it(commits_too_early: None, tmp_path: Path) -> None:
    done = simulate(
        *("--seeds", 3, "--topology", "keyed"),
        *("--json", tmp_path / "report.json", "--trace", tmp_path / "trace.txt"),
    )
    assert done.exit_code == 1, done.output
    assert "seed 0 fails. To see it again: python -m understudy simulate --seed 0 --topology keyed" in done.output
    assert "VIOLATION of commits-after-completion: " in done.output
    assert "job          is running" in done.output
    assert "outcome = run_history(Scenario(seed=0, topology='chain'" in done.output
    assert "# Scenario(seed=0" in (tmp_path / "trace.txt").read_text()
    (failed,) = json.loads((tmp_path / "report.json").read_text())["failing"]
    assert (failed["seed"], failed["oracle"]) == (0, "commits-after-completion")
    assert "run_history(Scenario(" in failed["shrunk"]


def test_the_shrunk_scenario_can_be_pasted(commits_too_early: None, tmp_path: Path) -> None:
    simulate("--seeds", 1, "--json", tmp_path / "report.json")
    (failed,) = json.loads((tmp_path / "report.json").read_text())["failing"]
    names: dict[str, Any] = {}
    exec(failed["shrunk"], names)
    assert names["outcome"].violations[0].oracle == failed["oracle"]


def test_of_failures_of_one_kind_only_the_first_is_told_in_full(commits_too_early: None) -> None:
    done = simulate("--seeds", 3, "--topology", "chain", "--keep-going", "--no-shrink")
    assert done.exit_code == 1
    assert done.output.count("To see it again") == 1
    assert "seed 1 fails, as seed 0 does: commits-after-completion" in done.output
    assert "seed 2 fails, as seed 0 does" in done.output


def test_a_crash_of_the_simulator_is_reported_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, *args: Any) -> Outcome:
        outcome = run_history(scenario, *args)
        assert scenario.workload.records < 5, "too many records"
        return outcome

    monkeypatch.setattr(verdict, "run_history", run)
    done = simulate("--seed", 1, "--topology", "chain")
    assert done.exit_code == 1
    assert "VIOLATION of crash: AssertionError: too many records" in done.output
    assert "Traceback" in done.output
    assert "records=5," in done.output.rpartition("outcome = ")[2]


# ---- one history


def test_one_seed_tells_its_story_and_writes_its_trace(tmp_path: Path) -> None:
    done = simulate("--seed", 7, "--trace", tmp_path / "trace.txt")
    assert done.exit_code == 0
    assert "job          is finished" in done.output
    assert "seed 7 (" in done.output
    lines = (tmp_path / "trace.txt").read_text().splitlines()
    assert lines[0] == f"# {standard_history(7)!r}"
    assert len(lines) > 50


def test_the_debugger_stops_at_a_time() -> None:
    interrupts = signal.getsignal(signal.SIGINT)
    done = simulate("--seed", 7, "--pdb", "--break-at", 3000, answers="p cluster.now_ms\nc\n")
    assert signal.getsignal(signal.SIGINT) is interrupts
    assert done.exit_code == 0
    assert "(Pdb) 3000.0" in done.output
    assert "no oracle broke" in done.output


def test_the_debugger_stops_where_the_first_oracle_breaks(commits_too_early: None) -> None:
    done = simulate("--seed", 7, "--pdb", answers="p operator.context.name\nc\n")
    assert done.exit_code == 1
    assert "(Pdb) 'out'" in done.output
    assert done.output.count("(Pdb)") == 2


# ---- usage


@pytest.mark.every_run
@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "1", "--seeds", "2"],
        ["--seed", "1", "--first-seed", "2"],
        ["--keep-going", "--stop-after", "2"],
        ["--pdb"],
        ["--seed", "1", "--break-at", "5"],
        ["--topology", "moebius"],
        ["--seeds", "0"],
        ["--minutes", "0"],
        ["--minutes", "1", "--seeds", "2"],
        ["--minutes", "1", "--seed", "2"],
        ["--processes", "0"],
        ["--stop-after", "0"],
        ["--seed", "1", "--json", "/nowhere/at/all"],
        ["diff", "1"],
        ["diff", "1", "/nowhere/at/all"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    done = simulate(*arguments)
    assert done.exit_code == 2, done.output
    assert "Error: " in done.output


# ---- diff


def test_a_history_is_the_same_as_its_trace(tmp_path: Path) -> None:
    simulate("--seed", 3, "--trace", tmp_path / "trace.txt")
    done = simulate("diff", 3, tmp_path / "trace.txt")
    assert (done.exit_code, done.output) == (0, "the same\n")


def test_a_trace_that_was_changed_parts_there(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("# one\n" + "".join(f"line {n}\n" for n in range(20)))
    (tmp_path / "other").write_text("# other\n" + "".join(f"line {n}\n" for n in range(12)) + "else\n")
    done = simulate("diff", tmp_path / "one", tmp_path / "other")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "the first 12 lines are the same; the last of them:",
        *(f"  line {n}" for n in range(7, 12)),
        f"then in {tmp_path / 'one'}:",
        *(f"  line {n}" for n in range(12, 17)),
        f"then in {tmp_path / 'other'}:",
        "  else",
    ]


def test_two_seeds_part_soon() -> None:
    done = simulate("diff", 1, 2, "--topology", "chain")
    assert done.exit_code == 1
    assert "then in 1:" in done.output


def test_divergence_tells_when_one_is_the_beginning_of_the_other() -> None:
    assert divergence("ab", "ab") is None
    assert divergence("ab", "abc") == Divergence(2, ("a", "b"), (), ("c",))
    assert divergence([], ["a"]) == Divergence(0, (), (), ("a",))


def test_a_process_that_was_ended_by_its_watchdog_gives_3(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **named: Any) -> Any:
        raise BrokenProcessPool("a process ended")

    monkeypatch.setattr("understudy.runtime.cli.simulate.run_campaign", broken)
    assert simulate("--seeds", 2).exit_code == HUNG
