"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them, and no
test leaves a serializer behind.

There are two kinds of tests, and `make test` runs both at the same time. Those that compute take a core each. Those
marked `processes`, `spark` or `chaos` start real processes and wait for them most of the time, so many of them run at
once. `--kind` chooses one kind, and reads only the files that have some of it. Of those that compute, `--kind unit`
leaves out the folders with whole jobs: in the simulator, against other systems, of the docs and the benchmarks.

Of tests marked `drawn`, many alike and each dear, `--draw KEY` runs an eighth: which one depends on KEY, so that runs
of eight commits run most of them, and one commit's run can be repeated. So it is with whole files of some folders, but
for tests marked `every_run`: tests/draw.py. Files that a draw leaves out are not read. Without `--draw` all run.

With UNDERSTUDY_SMALL_PIECES=1 all of a process's tests have the library with small pieces: tests/small_pieces.py.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from . import small_pieces

if small_pieces.ASKED_FOR_BY in os.environ:
    small_pieces.install()  # before the library is imported

from understudy.messages import serializers

from .draw import HERE, ONE_OF, drawn, leaves_out
from .examples import SHARES, USUAL
from .prepared import Prepared
from .spark_session import spark as spark  # a fixture
from .systems import QUICK_JAVA
from .systems.kafka import kafka as kafka  # a fixture
from .systems.secured_zookeeper import secured_zookeeper as secured_zookeeper  # a fixture
from .systems.zookeeper import zookeeper as zookeeper  # a fixture

gc.disable()
"""Until all is collected: of what is imported, and of the tests, nothing becomes garbage."""

_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
for _profile, _share in SHARES.items():
    settings.register_profile(_profile, _PATIENT, max_examples=round(USUAL * _share))
settings.load_profile("patient")
"""Each run has fresh examples; `make slow` has many: --hypothesis-profile=deep."""

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(HERE.parent / ".hypothesis"))
"""For the runs of pytest that tests start in folders of their own, too: there each would parse the whole library for
its constants again, which takes two seconds.
"""

os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(QUICK_JAVA))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", os.environ["SPARK_SUBMIT_OPTS"])

for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
        """Shells let all that they start in the background ignore Ctrl-C, and `nohup` ignores SIGHUP; so would scripts
        that tests interrupt.
        """

_WITH_PROCESSES = (HERE / "runtime" / "clusters", HERE / "runtime" / "cli")
"""All their tests are marked `processes`."""
_WHOLE_JOBS = re.compile(r"(benchmarks|runtime/(connectors|simulation))/|test_docs_|state/test_storage_s3")
"""What computes, and is no test of a part."""
_MARKS = frozenset({"processes", "spark", "chaos"})
_MARKED = re.compile(rf"mark\.({'|'.join(_MARKS)})\b")
_ALL_MARKED = re.compile(rf"^pytestmark = .*{_MARKED.pattern}", re.MULTILINE)
_TOGETHER = (
    "spark",
    "kafka",
    "zookeeper",
    "test_on_local_processes",
    "test_hostile_peers",
    "test_jobs.py",
    "test_what_cannot_be_done",
    "test_types_for_users",
    "postgres",
    "connectors/sql",
)
"""Tests of processes whose id has one of these run in one worker, one after the other: they share what takes long to
start; and of JVMs there is one at a time. Any other test goes to whichever worker is free.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    kinds = ["computing", "processes", "unit"]
    parser.addoption("--kind", choices=kinds, help="only tests of this kind: tests/conftest.py")
    parser.addoption("--draw", metavar="KEY", help="of tests marked `drawn` only an eighth, which the key chooses")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    kind, key = config.getoption("--kind"), config.getoption("--draw")
    return True if _has_none_of(kind, collection_path) or (key and leaves_out(collection_path, key)) else None


def _has_none_of(kind: str | None, path: Path) -> bool:
    if kind is None or _in_folders(path):
        return kind in ("computing", "unit")
    if kind == "unit" and _WHOLE_JOBS.match(_below_here(path)):
        return True
    text = path.read_text()
    return not _MARKED.search(text) if kind == "processes" else bool(_ALL_MARKED.search(text))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _in_folders(item.path):
            item.add_marker("processes")
    if unmarked := [item.nodeid for item in items if _has_jvm(item) and not _starts_processes(item)]:
        raise pytest.UsageError(f"to be marked `spark` or `processes`, as a JVM is started: {', '.join(unmarked)}")
    if (key := config.getoption("--draw")) is not None:
        _keep(drawn(items, key), items, config)
    if small_pieces.ASKED_FOR_BY in os.environ:
        _keep([item for item in items if item.get_closest_marker("usual_sizes") is None], items, config)
    kind = config.getoption("--kind")
    if kind is not None:
        parts: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            parts[_starts_processes(item) == (kind == "processes")].append(item)
        config.hook.pytest_deselected(items=parts[False])
        items[:] = parts[True]
    items.sort(key=lambda item: item.path.parent != HERE)  # of docs and README, the longest: no worker ends with one


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What has been imported and collected stays: to look for garbage among it takes up to two seconds each time. And
    simulated jobs make objects faster than garbage: to look seldom takes 4 % off them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_report_header(config: pytest.Config) -> str | None:
    key = config.getoption("--draw")
    return key and f"of the tests and files that are drawn one of {ONE_OF}: --draw {key}"


class _Scheduling(LoadScopeScheduling):
    """pytest-xdist 3.8 has groups too, but with pytest 9.2 it does not see them."""

    def _split_scope(self, nodeid: str) -> str:
        return next((each for each in _TOGETHER if each in nodeid), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _Scheduling(config, log) if config.getoption("--kind") == "processes" else None


@cache
def _below_here(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


@cache
def _in_folders(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _WITH_PROCESSES)


def _starts_processes(item: pytest.Item) -> bool:
    return not _MARKS.isdisjoint(mark.name for mark in item.iter_markers())


def _keep(left_in: list[pytest.Item], items: list[pytest.Item], config: pytest.Config) -> None:
    config.hook.pytest_deselected(items=list(set(items).difference(left_in)))
    items[:] = left_in


def _has_jvm(item: pytest.Item) -> bool:
    """Another worker would start a JVM of its own for it, of twelve seconds of the processor."""
    return not {"spark", "kafka", "zookeeper"}.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def own_serializers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of the test's own, with none in it."""
    monkeypatch.setattr(serializers, "_by_name", {})
    monkeypatch.setattr(serializers, "_by_type", {})
    serializers._serializer_for.cache_clear()
    yield
    serializers._serializer_for.cache_clear()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """Starts processes at once: one for all tests of a worker."""
    with contextlib.closing(Prepared(tmp_path_factory.mktemp("prepared"))) as started:
        yield started


@pytest.fixture
def forked_templates(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The template processes of clusters are forked from it: a new interpreter takes a second of the processor for each
    cluster. In tests/runtime/clusters it is always so.
    """
    monkeypatch.setattr("understudy.runtime.clusters.local_launcher.start_template", prepared.start_template)
