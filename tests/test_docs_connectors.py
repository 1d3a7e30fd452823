"""The pages of docs/connectors/ that one job explains are true: the job prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared
from .systems.redis import RedisServer, redis, redis_server
from .systems.s3 import S3Server, s3, s3_server

__all__ = ["redis", "redis_server", "s3", "s3_server"]

PAGES = Path(__file__).resolve().parent.parent / "docs" / "connectors"


@pytest.mark.processes
@pytest.mark.parametrize("page", ["delta", "files-that-come", "frames", "http", "iceberg"])
def test_the_job_prints_what_the_page_says(tmp_path: Path, prepared: Prepared, page: str) -> None:
    prints_what_it_says(page, tmp_path, prepared)


@pytest.mark.processes
def test_object_stores(tmp_path: Path, prepared: Prepared, s3: S3Server) -> None:
    s3.fs.call_s3("create_bucket", Bucket="reports")
    prints_what_it_says("object-stores", tmp_path, prepared)


@pytest.mark.processes
def test_redis(tmp_path: Path, prepared: Prepared, redis: RedisServer) -> None:
    prints_what_it_says("redis", tmp_path, prepared, **{"redis://localhost:6379/0": redis.url})


@pytest.mark.spark
def test_spark_streams(tmp_path: Path, prepared: Prepared) -> None:
    prints_what_it_says("spark-streams", tmp_path, prepared)


def prints_what_it_says(page: str, folder: Path, prepared: Prepared, **changes: str) -> None:
    """`changes`: what stands for an address on the page, and the address here."""
    text = (PAGES / f"{page}.md").read_text()
    (job,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    for old, new in changes.items():
        job = job.replace(old, new)
    (folder / "page.py").write_text(job)
    done = prepared.run("page.py", folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


VERSIONED = r"\b(pandas|Polars|DuckDB|pyarrow|PySpark|deltalake|pyiceberg|SQLAlchemy|psycopg|httpx|websockets) (\d+)\b"


def test_the_pages_name_one_version_of_each_library_that_they_were_tested_with() -> None:
    named: dict[str, set[str]] = {}
    for page in PAGES.glob("*.md"):
        for library, version in re.findall(VERSIONED, page.read_text()):
            named.setdefault(library, set()).add(version)
    assert "pyarrow" in named
    assert {library: versions for library, versions in named.items() if len(versions) > 1} == {}
