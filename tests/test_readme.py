"""What README and docs/spark.md show is run as it stands: the first jobs, the commands, and the links."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from .prepared import PATIENCE_SECONDS, Prepared

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def first_job() -> tuple[str, str]:
    """The program in README, and what the page says that it prints."""
    (found,) = re.findall(r"```python\n(.*?)```.*?\n```\n(.*?)```", README, re.DOTALL)
    program, printed = found
    return program, printed


def replaced(program: str, old: str, new: str) -> str:
    assert program.count(old) == 1
    return program.replace(old, new)


def output_of(program: str, folder: Path, timeout: int) -> str:
    (folder / "first_job.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "first_job.py"], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_the_first_job_prints_what_the_page_shows(tmp_path: Path) -> None:
    program, printed = first_job()
    assert output_of(program, tmp_path, timeout=60) == printed


@pytest.mark.processes
@pytest.mark.parametrize("task_managers", [1, 4])
def test_it_prints_the_same_with_other_numbers_of_task_managers(
    tmp_path: Path, prepared: Prepared, task_managers: int
) -> None:
    program, printed = first_job()
    program = replaced(program, "LocalCluster(task_managers=2)", f"LocalCluster(task_managers={task_managers})")
    (tmp_path / "first_job.py").write_text(program)
    done = prepared.run("first_job.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


@pytest.mark.spark
def test_the_first_job_prints_the_same_on_spark(tmp_path: Path, spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """With the two lines that the page names, and a session and the file that they speak of; in this process, which has
    a JVM already.
    """
    program, printed = first_job()
    stream, cluster = re.findall(
        r"On Spark the stream is `(.*?)` and the cluster is `(.*?)`; all the rest stays", README
    )[0]
    program = replaced(program, "env.from_collection(flights)", stream)
    program = replaced(program, "LocalCluster(task_managers=2)", cluster)
    program = replaced(
        program,
        "\nenv = StreamEnvironment",
        "\npq.write_table(pa.Table.from_pylist(flights), 'flights.parquet')"
        "\nspark = SparkSession.builder.master('local[2]').getOrCreate()"
        "\nenv = StreamEnvironment",
    )
    assert program.count("flights.parquet") == 2
    program = program.replace("flights.parquet", str(tmp_path / "flights.parquet"))
    imports = (
        "import pyarrow as pa\nimport pyarrow.parquet as pq\nfrom pyspark.sql import SparkSession\n"
        "from understudy import SparkCluster\n"
    )
    (tmp_path / "first_job.py").write_text(imports + program)
    runpy.run_path(str(tmp_path / "first_job.py"), run_name="__main__")
    assert capfd.readouterr().out == printed


@pytest.mark.spark
def test_the_job_of_the_spark_page_runs_and_its_output_is_right(
    tmp_path: Path, spark: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process too: the session that the page's job makes is the one that there is."""
    block = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)[0]
    (tmp_path / "spark_job.py").write_text(block)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("spark_job.py", run_name="__main__")
    rows = pq.read_table(tmp_path / "totals").to_pylist()
    wanted = {day: range(day, 100_000, 7) for day in range(7)}
    assert sorted((row["day"], row["flights"], row["miles"]) for row in rows) == [
        (day, len(miles), sum(miles)) for day, miles in wanted.items()
    ]
    assert len([line for line in capfd.readouterr().out.splitlines() if line.startswith("|  ")]) == 7


COMMANDS = [line.split("#")[0].split() for line in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)[0].splitlines()]


LOCAL = [pytest.mark.drawn]
ON_SPARK = [pytest.mark.spark, pytest.mark.slow]
"""test_demo.py runs the same demos with two kills; what is left to show is that the Makefile does."""


@pytest.mark.chaos
@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=LOCAL if "OPTIONS=--local" in each else ON_SPARK) for each in COMMANDS]
)
def test_the_two_commands_end_with_the_right_result(command: list[str]) -> None:
    """As the Makefile runs them, but in the environment of this test, which needs no installation."""
    installed = [f"BIN={Path(sys.executable).parent}", "READY=installed", "--old-file=installed"]
    done = subprocess.run(
        [*command, *installed], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(COMMANDS) == 2


def test_the_picture_is_xml_and_has_its_own_background() -> None:
    """An opaque card, so that it can be read on a light page and on a dark one."""
    (name,) = re.findall(r"!\[.*?\]\((.*?\.svg)\)", README)
    picture = ElementTree.parse(ROOT / name).getroot()
    first = next(each for each in picture if each.tag.endswith("rect"))
    width, height = (int(picture.attrib[each]) for each in ("width", "height"))
    assert (int(first.attrib["width"]), int(first.attrib["height"])) == (width - 2, height - 2)
    assert first.attrib["fill"] == "#ffffff"


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in (README, (ROOT / "docs" / "development.md").read_text()):
        named = set(re.findall(r"^make ([a-z]+)|`make (?:[A-Z]+=\S* )*([a-z]+)", page, re.MULTILINE))
        assert named
        assert {target for pair in named for target in pair if target} <= targets


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def links_of(page: Path) -> list[tuple[str, str]]:
    """Each link to a file: its path, empty for the page itself, and its anchor."""
    found = re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)", without_code(page.read_text()))
    return [(path, anchor) for path, anchor in found if "://" not in path]


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each).strip().lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def test_every_link_leads_somewhere_and_every_anchor_to_a_heading() -> None:
    for page in PAGES:
        for path, anchor in links_of(page):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name} links to {path}"
            assert not anchor or anchor in anchors_of(target), f"{page.name} links to {path}#{anchor}"


def test_an_anchor_that_is_no_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` [c](d.md): e\n[one](#a-b-c-e) [two](#other) ```[three](#none)```")
    assert anchors_of(page) == {"a-b-c-e"}
    assert [anchor for _, anchor in links_of(page)] == ["", "a-b-c-e", "other"]


def test_every_page_can_be_reached_from_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in reached:
            reached.add(page)
            waiting += [page.parent / path for path, _ in links_of(page) if path.endswith(".md")]
    decisions = ROOT / "docs" / "decisions"
    assert [page for page in PAGES if page not in reached and page.parent != decisions] == []


def test_each_extra_is_named() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    (table,) = re.findall(r"^\| extra \|.*?\n\n", README, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:] if row))
    assert sorted(named) == sorted(settings["options.extras_require"])
