"""What every benchmark reports: where its figures come from, how they spread, and the JSON file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

LIBRARIES = ("understudy", "pyzmq", "aiozmq", "msgpack", "pyarrow", "pyspark")
CACHE = Path(tempfile.gettempdir()) / "understudy-benchmarks"
ROOT = Path(__file__).resolve().parent.parent


def shared_options(command: Command) -> Command:
    """The options that every benchmark has."""
    command = click.option("--runs", default=1, show_default=True, type=click.IntRange(1), help="Jobs to run.")(command)
    return click.option("--json", "json_path", type=click.Path(dir_okay=False), help="Write the report there.")(command)


def contest_options(command: Command) -> Command:
    """The options of every comparison with peers."""
    for option in (
        click.option(
            "--peers",
            default="",
            help="Comma-separated: duckdb,polars,spark,bytewax,pyflink,flink,flink-pairs,pathway.",
        ),
        click.option(
            "--data-dir",
            default=CACHE,
            show_default=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Where data and the peers' environments are kept.",
        ),
    ):
        command = option(command)
    return shared_options(command)


def provenance() -> dict[str, Any]:
    """Commit, versions and machine."""
    return {
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **dict(_versions(LIBRARIES))},
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()},
    }


def spread(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """`median_NAME`, `min_NAME` and `max_NAME`; each None when there are no values."""
    if not values:
        return {f"{what}_{name}": None for what in ("median", "min", "max")}
    return {
        f"median_{name}": round(statistics.median(values), 3),
        f"min_{name}": round(min(values), 3),
        f"max_{name}": round(max(values), 3),
    }


def over_cases(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a report of several cases says of all: rows and seconds of all together, the median rate, the most memory.

    A case that failed has none of these, and does not count.
    """
    rates = [case["rows_per_s"] for case in cases if "rows_per_s" in case]
    return {
        "rows": sum(case.get("rows", 0) for case in cases),
        "rows_per_s": round(statistics.median(rates)) if rates else None,
        "wall_s": round(sum(case.get("wall_s", 0.0) for case in cases), 2),
        "peak_rss_mb": max((case.get("peak_rss_mb", 0) for case in cases), default=0),
    }


def deliver(report: dict[str, Any], problems: Sequence[str], json_path: str | None) -> None:
    """Print the report, write it, and leave with exit code 1 when the answer was wrong."""
    for key, value in report.items():
        click.echo(f"{key:>14}  {value if isinstance(value, str) else json.dumps(value)}")
    for problem in problems:
        click.echo(f"WRONG: {problem}", err=True)
    if json_path:
        Path(json_path).write_text(json.dumps({**report, "problems": list(problems)}, indent=2) + "\n")
    raise SystemExit(1 if problems else 0)


def finish(heading: dict[str, Any], figures: dict[str, Any], problems: Sequence[str], json_path: str | None) -> None:
    """Deliver the report of a comparison: a summary for people, everything in the JSON file."""
    source = provenance()
    versions = source.pop("versions") | figures.pop("versions", {})
    deliver({**heading, **figures, "versions": versions, **source}, problems, json_path)


def _commit() -> str:
    """The checkout's commit, with "+" when there are changes on top; "unknown" outside of a checkout."""
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _versions(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
