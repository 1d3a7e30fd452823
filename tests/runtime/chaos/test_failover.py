"""Leaders are killed on real processes, and whoever waited goes on, exactly: by shared storage, and by ZooKeeper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from understudy.messages import codec
from understudy.runtime.chaos.failover import FailoverOptions, FailoverReport, run_failover

from ...messages.recorded_vocabulary import sample
from ...messages.strategies import vocabulary
from ...systems.zookeeper import Ensemble
from . import next_release

pytestmark = pytest.mark.processes


def options(takeovers: int, mode: str) -> FailoverOptions:
    return FailoverOptions(takeovers, mode, session_timeout_ms=4_000)


def test_a_killed_leader_is_followed_and_the_output_is_exact(tmp_path: Path, zookeeper: Ensemble) -> None:
    report = run_failover(options(1, "zookeeper"), tmp_path, quorum=zookeeper.quorum)
    assert (list(report.lines(4_000))[-1], report.problems) == ("1 takeovers, 1 exact", [])


def test_leaders_of_two_releases_follow_each_other(tmp_path: Path, zookeeper: Ensemble) -> None:
    """A rolling upgrade, and back: what one keeps in ZooKeeper the other reads, as do the TaskManagers of both."""
    programs = ("tests.runtime.chaos.next_release", "understudy.runtime.chaos.candidate")
    asked = replace(options(2, "zookeeper"), programs=programs)
    report = run_failover(asked, tmp_path, quorum=zookeeper.quorum)
    assert (list(report.lines(4_000))[-1], report.problems) == ("2 takeovers, 2 exact", [])


@pytest.mark.parametrize("cls", vocabulary().values(), ids=lambda cls: cls.__name__)
def test_what_the_other_release_says_differs_and_means_the_same(cls: type) -> None:
    said = next_release.of_another_release(sample(cls), codec.MAX_DEPTH)
    assert "of_the_next_release" in said[1]
    assert codec.decode(msgpack.packb(said)) == sample(cls)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["zookeeper", "storage"])
def test_many_are(tmp_path: Path, mode: str, zookeeper: Ensemble) -> None:
    report = run_failover(options(5, mode), tmp_path, quorum=zookeeper.quorum)
    assert (list(report.lines(4_000))[-1], report.problems) == ("5 takeovers, 5 exact", [])


def test_a_run_says_how_many_were_exact_and_what_was_not() -> None:
    report = FailoverReport(
        3, [(2, "a record was lost"), (2, "and another one")], to_lead_s=[1.0, 3.0, 2.0], to_run_s=[2.0, 4.0, 3.0]
    )
    assert not report.is_good
    assert list(report.lines(1_000)) == [
        "after takeover 2: a record was lost",
        "after takeover 2: and another one",
        "median: 2.00 s from the kill until the next one leads (session timeout 1 s), 3.00 s until all tasks run",
        "3 takeovers, 2 exact",
    ]
