"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them, and no
test leaves a serializer behind.

There are two kinds of tests, and `make test` runs both at the same time. Those that compute take a core each. Those
marked `processes`, `spark` or `chaos` start real processes and wait for them most of the time, so many of them run at
once. `--kind` chooses one kind, and reads only the files that have some of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from understudy.messages import serializers

_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", _PATIENT, max_examples=50)
settings.register_profile("deep", _PATIENT, max_examples=500)
settings.load_profile("patient")
"""Each run has fresh examples; `make slow` has many: --hypothesis-profile=deep."""

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ.setdefault("SPARK_LAUNCHER_OPTS", os.environ["SPARK_SUBMIT_OPTS"])
"""A JVM that lives for some seconds and is not worth its optimizing compiler, nor threads to collect garbage with: it
takes half of the processor's time.
"""

_HERE = Path(__file__).parent
_WITH_PROCESSES = (_HERE / "runtime" / "clusters", _HERE / "runtime" / "cli")
"""All their tests are marked `processes`."""
_MARKS = frozenset({"processes", "spark", "chaos"})
_MARKED = re.compile(rf"mark\.({'|'.join(_MARKS)})\b")
_ALL_MARKED = re.compile(rf"^pytestmark = .*{_MARKED.pattern}", re.MULTILINE)
_TOGETHER = frozenset({"on_local_processes", "running", "tcp_cluster", "cache"})
"""Fixtures that are dear and not every worker's: tests of one file that share one run in the same worker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kind", choices=["computing", "processes"], help="only tests of this kind: tests/conftest.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    kind = config.getoption("--kind")
    if kind is None or collection_path.suffix != ".py":
        return None
    if _in_folders(collection_path):
        return True if kind == "computing" else None
    text = collection_path.read_text()
    if kind == "processes":
        return None if _MARKED.search(text) else True
    return True if _ALL_MARKED.search(text) else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist asks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _in_folders(item.path):
            item.add_marker("processes")
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    kind = config.getoption("--kind")
    if kind is not None:
        wanted = [item for item in items if _starts_processes(item) == (kind == "processes")]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
        items[:] = wanted


def _group(item: pytest.Item) -> str | None:
    """Of those that one worker runs one after the other: what they share is dear, or, a JVM, each of them is."""
    if item.get_closest_marker("spark") is not None:
        return "spark"
    return item.path.stem if _TOGETHER.intersection(getattr(item, "fixturenames", ())) else None


def _in_folders(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _WITH_PROCESSES)


def _starts_processes(item: pytest.Item) -> bool:
    return not _MARKS.isdisjoint(mark.name for mark in item.iter_markers())


@pytest.fixture(autouse=True)
def own_serializers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of the test's own, with none in it."""
    monkeypatch.setattr(serializers, "_by_name", {})
    monkeypatch.setattr(serializers, "_by_type", {})
    serializers._serializer_for.cache_clear()
    yield
    serializers._serializer_for.cache_clear()
