"""Settings of a Spark session that a SparkCluster refuses, by a session that only has settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy import InvalidSetting
from understudy.runtime.clusters.spark_session_use import check_speculation

THRESHOLD = "spark.speculation.task.duration.threshold"


def session(master: str, **settings: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: settings))


def test_a_session_that_starts_long_tasks_a_second_time_is_refused() -> None:
    """Two TaskManagers of one index would take each other's place again and again."""
    settings = {"spark.speculation": "true", THRESHOLD: "10min"}
    with pytest.raises(InvalidSetting, match=r"start each TaskManager a second time after 10min.*speculation=false"):
        check_speculation(session("spark://master:7077", **settings))


@pytest.mark.parametrize(
    ("master", "settings"),
    [
        ("yarn", {"spark.speculation": "true"}),
        ("yarn", {THRESHOLD: "10min"}),
        ("yarn", {"spark.speculation": "false", THRESHOLD: "10min"}),
        ("local[4]", {"spark.speculation": "true", THRESHOLD: "10min"}),
        ("yarn", {}),
    ],
)
def test_other_sessions_are_taken(master: str, settings: dict[str, str]) -> None:
    """A task that is alone in its stage is started once, if no threshold is set."""
    check_speculation(session(master, **settings))
