"""What users write passes their own strict type checker: a source of their own, and the handle's futures and twins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        timeout=150,
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


def test_the_source_of_the_page_on_savepoints_is_this_one_without_its_types() -> None:
    (shown,) = re.findall(
        r"### A source of your own\n\n```python\n(.*?)```", (ROOT / "docs/savepoints.md").read_text(), re.DOTALL
    )
    untyped = re.sub(r": (?:Offset|Sequence\[Offset\])(?=\))| -> [^:\n]+(?=:\n)", "", TYPED)
    for line in filter(None, map(str.strip, shown.splitlines())):
        assert line.partition("  #")[0].startswith("from understudy") or line.partition("  #")[0] in untyped, line
