"""docs/connectors/sql.md and postgres-cdc.md are true: their jobs print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .prepared import Prepared
from .systems.postgresql import PostgreSQL, pg_url, postgresql  # noqa: F401

PAGES = Path(__file__).resolve().parent.parent / "docs" / "connectors"


def program_and_output(page: str) -> tuple[str, str]:
    text = (PAGES / page).read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    return program, printed


@pytest.mark.processes
def test_the_job_on_sqlite_prints_what_the_page_says(tmp_path: Path, prepared: Prepared) -> None:
    program, printed = program_and_output("sql.md")
    (tmp_path / "shop.py").write_text(program)
    done = prepared.run("shop.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


@pytest.mark.processes
def test_the_job_on_postgres_prints_what_the_page_says(
    tmp_path: Path,
    prepared: Prepared,
    pg_url: str,  # noqa: F811
) -> None:
    program, printed = program_and_output("postgres-cdc.md")
    assert "postgresql://app:secret@localhost/shop" in program
    program = program.replace("postgresql://app:secret@localhost/shop", pg_url)
    (tmp_path / "copy_orders.py").write_text(program)
    done = prepared.run("copy_orders.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
