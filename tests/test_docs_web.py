"""docs/web.md is true: its examples run, and the pictures that it shows are there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from understudy import LocalCluster
from understudy.state.job_history import JobHistory

from .prepared import Prepared

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "web.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.processes
def test_the_example_runs_and_leaves_its_job_in_the_history(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "example.py").write_text(EXAMPLES[0])
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"the page: http://127\.0\.0\.1:\d+/\n", done.stdout)
    (ended,) = JobHistory(str(tmp_path / "ended-jobs")).jobs()
    assert (ended.view.summary.name, ended.view.summary.status.value) == ("greatest", "finished")


def test_the_example_of_a_service_serves_the_page_below_its_path() -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES[1], names)
    assert isinstance(names["cluster"], LocalCluster)

    async def look() -> tuple[int, str, int]:
        transport = httpx.ASGITransport(names["service"])  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://jobs.example.com") as client:
            page, asked = await client.get("/flow/"), await client.get("/flow/jobs/overview")
            return page.status_code, page.text, asked.status_code

    status, text, asked = asyncio.run(look())
    assert (status, asked) == (200, 503), "the cluster of the example has not been started"
    assert 'src="main.js"' in text


def test_the_pictures_are_there() -> None:
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGE):
        assert (DOCS / name).stat().st_size < 300_000
