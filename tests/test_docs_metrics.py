"""docs/metrics.md is true: its example runs, and the figures it lists are those that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from understudy.runtime.simulation.world.cluster import SimulatedCluster

from .prepared import Prepared
from .runtime.simulation.world.test_cluster import counting

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "metrics.md").read_text()


@pytest.mark.processes
def test_the_example_runs(tmp_path: Path, prepared: Prepared) -> None:
    block = next(re.finditer(r"```python\n(.*?)```", PAGE, re.DOTALL))[1]
    (tmp_path / "example.py").write_text(block)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "lines: high\nparse: ok\nbusy: True\nbad: True True\nruns: Parse.process\n"


@pytest.mark.processes
def test_figures_are_served_and_logs_are_json(tmp_path: Path, prepared: Prepared) -> None:
    served, logged = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1:]
    (tmp_path / "served.py").write_text(served)
    done = prepared.run("served.py", folder=tmp_path)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics\n", done.stdout), done.stderr
    (tmp_path / "logged.py").write_text(logged)
    done = prepared.run("logged.py", folder=tmp_path)
    line = json.loads(done.stderr)
    assert (line["level"], line["logger"], line["message"]) == ("WARNING", "orders", "no price")


def test_each_figure_is_on_the_page() -> None:
    with SimulatedCluster(1) as cluster:
        job = cluster.submit(counting(records=100))
        cluster.run_for(3_000)
        metrics, of_cluster = job.metrics(), cluster.metrics()
    shown = set(re.findall(r"`([A-Za-z.]+)`", PAGE))
    names = (
        {name for vertex in metrics.vertices for name in vertex.values} | set(metrics.values) | set(of_cluster.values)
    )
    assert names, "there are figures"
    missing = {
        name
        for name in names
        if name not in shown and f"OPERATOR.{name.rpartition('.')[2]}" not in shown
        and not (name.endswith("PerSecond") and name.removesuffix("PerSecond") in shown)
    }  # fmt: skip
    assert missing <= {f"{each}.numLateRecordsDropped" for vertex in metrics.vertices for each in vertex.operators}
