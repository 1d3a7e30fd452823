"""A draw: which of the files and tests that are drawn one run has. A sixteenth, another one for each key.

All that is drawn stands in a row: the files of some folders, and within a file its tests that are marked `drawn`. Each
sixteen in a row that follow one another are a lot, and the key chooses one of each lot. So a run has as many of each
folder and of each kind of test as any other run has, and takes about as long: neighbours in a row are alike. The
dearest files stand first, by what they cost.

Tests of one mark that has `by`, the name of a parameter, are drawn as one for each of its values: they share what
takes long.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

ONE_OF = 16
HERE = Path(__file__).parent
_DRAWN_FILES = re.compile(
    r"(benchmarks|mistakes|runtime/(chaos|cli|clusters|connectors|savepoints|simulation|spark)"
    r"|actors/(compiled|joins)|state/(columnar|rocks))/|test_docs_|test_types_for_users"
)
"""Files whose path begins so are drawn as a whole: their tests share what takes long to start, or are alike."""
_DEAREST = (
    "mistakes/test_mistakes.py",
    "runtime/cli/test_demo.py",
    "test_types_for_users.py",
    "test_docs_simulation.py",
    "runtime/clusters/test_resume.py",
    "runtime/connectors/kafka/test_kafka_contracts.py",
    "benchmarks/test_nexmark_queries.py",
    "runtime/spark/test_session_gone.py",
    "mistakes/test_async_mistakes.py",
    "runtime/spark/test_driver_dies.py",
    "runtime/spark/test_spark_stream_driver_dies.py",
    "runtime/connectors/test_tls.py",
    "runtime/connectors/sql/test_sql_exactly_once.py",
    "test_docs_connector_kit.py",
    "runtime/simulation/trials/test_hash_seeds.py",
    "runtime/simulation/histories/test_determinism.py",
    "test_docs_connectors.py",
    "runtime/connectors/sql/test_sql_source.py",
    "test_docs_kafka.py",
    "runtime/cli/test_docs.py",
    "runtime/clusters/test_lakes_on_s3.py",
    "runtime/simulation/histories/test_campaign.py",
    "runtime/simulation/histories/test_led_histories.py",
    "runtime/clusters/test_inlets.py",
    "runtime/connectors/sql/test_sql_sinks.py",
    "runtime/connectors/sql/test_failover.py",
    "runtime/cli/test_simulate.py",
    "runtime/clusters/test_hostile_peers.py",
    "runtime/clusters/test_s3_checkpoints.py",
    "runtime/simulation/histories/test_compiled.py",
    "actors/compiled/test_timers.py",
    "runtime/clusters/test_lakes.py",
    "runtime/simulation/histories/test_async_themes.py",
    "runtime/clusters/test_encryption.py",
)
"""Of these, those that were seen to take nine seconds of the processor or more, the dearest first."""
_NOT_DRAWN = re.compile(r"^pytestmark = .*\bmark\.(every_run|drawn)\b", re.MULTILINE)
"""Files of these folders that are not drawn as a whole: each run has them, or of their tests a sixteenth."""
_OTHERWISE = re.compile(r"mark\.(every_run|drawn)\b")
"""What some tests of a file are marked with that run, or are drawn, by themselves."""

_Each = TypeVar("_Each")


def one_of_each_lot(row: Sequence[_Each], key: str) -> list[_Each]:
    """Of a last lot that is short none, as often as it is short of."""
    found = []
    for begin in range(0, len(row), ONE_OF):
        place = begin + zlib.crc32(f"{key} {begin}".encode()) % ONE_OF
        found += row[place : place + 1]
    return found


def leaves_out(path: Path, key: str) -> bool:
    """Whether a draw leaves out all of a file, so that it need not be read."""
    return not _leaves_in(path, key) and not _OTHERWISE.search(path.read_text())


def drawn(items: Iterable[pytest.Item], key: str) -> list[pytest.Item]:
    """Those that run, in their order."""
    items = list(items)
    rows: dict[Path, dict[str, None]] = {}
    for item in items:
        if item.get_closest_marker("drawn"):
            rows.setdefault(item.path, {})[_unit(item)] = None
    chosen = {
        (path, unit)
        for path, units in rows.items()
        for unit in one_of_each_lot(list(units), f"{key} {_below_here(path)}")
    }
    return [item for item in items if _runs(item, key, chosen)]


def _runs(item: pytest.Item, key: str, chosen: set[tuple[Path, str]]) -> bool:
    if item.get_closest_marker("drawn"):
        return (item.path, _unit(item)) in chosen
    return item.get_closest_marker("every_run") is not None or _leaves_in(item.path, key)


def _unit(item: pytest.Item) -> str:
    mark = item.get_closest_marker("drawn")
    by = mark.kwargs.get("by") if mark else None
    return f"{item.nodeid.partition('[')[0]}[{item.callspec.params[by]}]" if by else item.nodeid  # type: ignore[attr-defined]


@cache
def _leaves_in(path: Path, key: str) -> bool:
    name = _below_here(path)
    return not _DRAWN_FILES.match(name) or name in _files_of(key)


@cache
def _files_of(key: str) -> frozenset[str]:
    return frozenset(one_of_each_lot(row_of_files(), key))


@cache
def row_of_files() -> tuple[str, ...]:
    """All files that are drawn as a whole, below this folder."""
    paths = (path for path in HERE.rglob("test_*.py") if _DRAWN_FILES.match(_below_here(path)))
    found = sorted(_below_here(path) for path in paths if not _NOT_DRAWN.search(path.read_text()))
    return (*_DEAREST, *(each for each in found if each not in _DEAREST))


@cache
def _below_here(path: Path) -> str:
    return path.relative_to(HERE).as_posix()
