"""What README and docs/spark.md show is run as it stands: the first jobs, the commands, and the links."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_the_first_job_runs_and_its_output_is_right(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "first_job.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "first_job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert len({(row["_1"], row["_2"]) for row in rows}) == len(rows)
    assert {max(row["_2"] for row in rows if row["_1"] == origin) for origin in ("JFK", "EWR", "LGA")} == {99.0}


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_first_job_on_spark_runs_and_its_output_is_right(tmp_path: Path) -> None:
    block = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)[0]
    (tmp_path / "spark_job.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "spark_job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "totals").to_pylist()
    wanted = {day: range(day, 100_000, 7) for day in range(7)}
    assert sorted((row["day"], row["flights"], row["miles"]) for row in rows) == [
        (day, len(miles), sum(miles)) for day, miles in wanted.items()
    ]
    assert len([line for line in done.stdout.splitlines() if line.startswith("|  ")]) == 7


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z]+)", README)) <= targets


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"
