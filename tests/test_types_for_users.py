"""What users write passes their own type checker: mypy --strict and pyright, on the files of typing_samples/.

thirty_operators.py is a program of some size, odd_and_right.py has what a type checker may well refuse and must not, in
pyright's strict mode too, with the types of its streams; each line of mistakes.py that says WRONG is reported.

pyarrow has no types of its own, so that mypy is told not to miss them, and a batch in the wrong place is not seen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent

TYPED = '''
from collections.abc import Sequence
from typing import Any, Literal, NewType

from understudy import END, IndexShare, JobHandle, LocalCluster, RemoteCluster, Source, SourceState, StreamEnvironment

Offset = dict[str, Any]
Shard = NewType("Shard", int)


class Numbers(Source):
    """0, 1, 2, ... 999."""

    def open(self) -> None:
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism)

    def poll(self) -> list[int] | Literal[SourceState.END] | None:
        taken = self._share.take(100, 1000)
        return END if taken is None else list(taken)

    def offset(self) -> Offset:
        return self._share.to_plain()

    def seek(self, offset: Offset) -> None:
        self._share = IndexShare.from_plain(offset, self.context.parallelism)

    def rescale(self, offsets: Sequence[Offset]) -> None:
        self._share = IndexShare.dealt_out(offsets, self.context.subtask_index, self.context.parallelism)


IndexShare.dealt_out([IndexShare.fresh(0, 1, width=8).to_plain()], Shard(1), parallelism=2, width=8)


async def watched(cluster: LocalCluster, client: RemoteCluster, env: StreamEnvironment) -> int:
    job: JobHandle = await cluster.submit_async(env, "numbers", from_savepoint=None)
    await job.ready()
    path: str = await client.trigger_savepoint(job.job_id)
    rows: list[Any] = await job.results_async("out")
    return len(path) + len(rows) + (await job.details_async(timeout=5.0)).restarts + len(await client.jobs_async())
'''
WRONG = {
    "await job.details_async(time=5)": "Unexpected keyword argument",
    "await client.find_async(7)": "incompatible type",
    'IndexShare.fresh("0", 1)': "incompatible type",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def check(program: str, folder: Path, cache: Path) -> str:
    pytest.importorskip("mypy")
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="),
            *(f"--cache-dir={cache}", "program.py"),
        ],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.processes
def test_what_is_right_passes(tmp_path: Path, cache: Path) -> None:
    assert "Success" in check(TYPED, tmp_path, cache)


@pytest.mark.processes
def test_what_is_wrong_does_not(tmp_path: Path, cache: Path) -> None:
    body = "\n".join(f"    {line}" for line in WRONG)
    told = check(f"{TYPED}\nasync def wrong(job: JobHandle, client: RemoteCluster) -> None:\n{body}\n", tmp_path, cache)
    for text in WRONG.values():
        assert text in told
    assert f"Found {len(WRONG)} errors" in told


@pytest.mark.processes
def test_the_types_on_the_page_about_records_are_as_it_says(tmp_path: Path, cache: Path) -> None:
    (shown,) = re.findall(
        r"## Types of records\n.*?```python\n(.*?)```", (ROOT / "docs/records.md").read_text(), re.DOTALL
    )
    said = re.findall(r"^(\w+) = .*# an? (DataStream\[.*\]+)", shown, re.MULTILINE)
    assert [name for name, _ in said] == ["bids", "users", "totals"]
    program = shown + "".join(f"reveal_type({name})\n" for name, _ in said)
    told = check(program, tmp_path, cache).replace("understudy.runtime.api.stream.", "").replace("program.", "")
    assert re.findall(r'Revealed type is "(.*)"', told) == [kind for _, kind in said]
    assert "error:" not in told


# -- a file of thirty operators, and one of mistakes

SAMPLES = ROOT / "tests" / "typing_samples"
RIGHT, MISTAKES = SAMPLES / "thirty_operators.py", SAMPLES / "mistakes.py"
ODD = SAMPLES / "odd_and_right.py"
FIRST_JOB = "first_job.py"
"""README's program."""
MARKED = {number for number, line in enumerate(MISTAKES.read_text().splitlines(), 1) if "  # WRONG: " in line}
Reports = list[tuple[str, int]]
"""File and line of each error."""


def first_job_in(folder: Path) -> str:
    """The path of a file with README's program."""
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (folder / FIRST_JOB).write_text(program)
    return str(folder / FIRST_JOB)


@pytest.fixture(scope="module")
def mypy_reports(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("config")
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-pyarrow.*]\nignore_missing_imports = True\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--follow-imports=silent", f"--config-file={config}"),
            *(
                f"--cache-dir={cache}",
                "--no-pretty",
                "--no-color-output",
                RIGHT.name,
                ODD.name,
                MISTAKES.name,
                first_job_in(folder),
            ),
        ],
        cwd=SAMPLES,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "checked 4 source files" in done.stdout, done.stdout + done.stderr
    errors = re.findall(r"^(\S+\.py):(\d+): error:", done.stdout, re.MULTILINE)
    return [(Path(file).name, int(line)) for file, line in errors]


@pytest.fixture(scope="module")
def pyright_reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """It takes some seconds; at its first run on a machine its wrapper downloads it, where there is a network."""
    beside = Path(sys.executable).parent / "pyright"
    command = str(beside) if beside.exists() else shutil.which("pyright")
    if command is None:
        pytest.skip("pyright is not installed: pip install 'understudy[dev]'")
    folder = tmp_path_factory.mktemp("pyright")
    for sample in (RIGHT, ODD, MISTAKES):
        shutil.copy(sample, folder)
    first_job_in(folder)
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT / "src")], "strict": [ODD.name]}))
    done = subprocess.run(
        [command, "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    try:
        report = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        pytest.skip(f"pyright does not run here: {done.stderr.strip()[-200:]}")
    assert report["summary"]["filesAnalyzed"] == 4
    return [(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in report["generalDiagnostics"]]


def test_the_sample_has_thirty_operators_and_no_ignore() -> None:
    text = RIGHT.read_text()
    classes = re.findall(
        r"^class \w+\((?:Source|Operator|KeyedOperator|TwoPhaseCommitSink\[str\])\):", text, re.MULTILINE
    )
    methods = r"\.(map|filter|flat_map|map_batches|reduce|aggregate|union|rebalance|broadcast|collect|print|connect)\("
    built_in = set(re.findall(methods, text)) | set(re.findall(r"\b(Count|Max|Min|Avg|Sum|FileSink)\(", text))
    assert len(classes) + len(built_in) >= 30
    for text_of in (text, ODD.read_text(), MISTAKES.read_text()):
        assert not re.search(r"type: *ignore|pyright:|no_type_check|\bcast\(", text_of)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize("file", [RIGHT.name, ODD.name, FIRST_JOB])
def test_a_file_of_thirty_operators_an_odd_one_and_the_first_job_pass(
    checker: str, file: str, request: pytest.FixtureRequest
) -> None:
    reports: Reports = request.getfixturevalue(f"{checker}_reports")
    assert [line for named, line in reports if named == file] == []


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_each_mistake_is_reported_and_nothing_else(checker: str, request: pytest.FixtureRequest) -> None:
    reports: Reports = request.getfixturevalue(f"{checker}_reports")
    assert len(MARKED) >= 55
    assert {line for file, line in reports if file == MISTAKES.name} == MARKED


def test_the_source_of_the_page_on_savepoints_is_this_one_without_its_types() -> None:
    (shown,) = re.findall(
        r"### A source of your own\n\n```python\n(.*?)```", (ROOT / "docs/savepoints.md").read_text(), re.DOTALL
    )
    untyped = re.sub(r": (?:Offset|Sequence\[Offset\])(?=\))| -> [^:\n]+(?=:\n)", "", TYPED)
    for line in filter(None, map(str.strip, shown.splitlines())):
        assert line.partition("  #")[0].startswith("from understudy") or line.partition("  #")[0] in untyped, line
