"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them, and no
test leaves a serializer behind.

There are two kinds of tests, and `make test` runs both at the same time. Those that compute take a core each. Those
marked `processes`, `spark` or `chaos` start real processes and wait for them most of the time, so many of them run at
once: `--testers` and `--cores` say how many of either kind (tests/testers.py). `--kind` chooses one kind, and reads
only the files that have some of it. Of those that compute, `--kind unit` leaves out the folders with whole jobs: in the
simulator, against other systems, of the docs and the benchmarks.

Of tests marked `drawn`, many alike and each dear, `--draw KEY` runs a sixteenth: which one depends on KEY, so that
runs of sixteen commits run most of them, and one commit's run can be repeated. So it is with whole files of some
folders, but for tests marked `every_run`: tests/draw.py. Files that a draw leaves out are not read. Without `--draw`
all run.

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

import pytest
from hypothesis import HealthCheck, settings

from . import small_pieces

if small_pieces.ASKED_FOR_BY in os.environ:
    small_pieces.install()  # before the library is imported

from understudy.messages import serializers

from . import testers
from .draw import HERE, ONE_OF, drawn, leaves_out
from .examples import SHARES, USUAL
from .prepared import Prepared
from .shared_out import grouped
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
"""Tests of processes whose id has one of these run in one tester, one after the other: they share what takes long to
start; and of JVMs there is one at a time. Any other test goes to whichever tester is free.
"""
_ONE_PARSE = re.compile("test_(english|house|public_face|rooms)[.]py")
"""They read all of the code: parsed.py. One tester runs them, as it takes five seconds to parse it."""
_FAILED = "testers/failed"
"""In pytest's cache: the tests that failed in the last run with testers, and whether they start processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    kinds = ["computing", "processes", "unit"]
    parser.addoption("--kind", choices=kinds, help="only tests of this kind: tests/conftest.py")
    parser.addoption("--draw", metavar="KEY", help="of tests marked `drawn` only a sixteenth, which the key chooses")
    parser.addoption("--testers", type=int, metavar="N", help="run N tests of processes at once: tests/testers.py")
    parser.addoption("--cores", type=int, metavar="N", help="run N tests that compute at once")
    again = "only tests of processes that failed with the testers of the last run: an error if others failed as well"
    parser.addoption("--second-try", action="store_true", help=again)


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
    if config.getoption("--second-try"):
        _keep(_to_try_again(items, config), items, config)
    items.sort(key=lambda item: item.path.parent != HERE)  # of docs and README, the longest: no tester ends with one


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


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    counts = {True: options.testers, False: options.cores}
    if counts == {True: None, False: None} or options.collectonly or options.usepdb or session.testsfailed:
        return None
    places: dict[bool, list[tuple[int, str, bool]]] = {True: [], False: []}
    for place, item in enumerate(session.items):
        whole = _group_of(item)
        places[_starts_processes(item)].append((place, whole or _below_here(item.path), whole is not None))
    testers.run(session, [(counts[kind] or 1, list(grouped(found))) for kind, found in places.items()])
    return True


def _group_of(item: pytest.Item) -> str | None:
    """Of tests that stay together."""
    if _starts_processes(item):
        return next((each for each in _TOGETHER if each in item.nodeid), None)
    return _ONE_PARSE.pattern if _ONE_PARSE.fullmatch(item.path.name) else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """For --second-try."""
    options, reporter = session.config.option, session.config.pluginmanager.get_plugin("terminalreporter")
    cache = testers.cache_of(session.config)
    if cache is None or reporter is None or options.testers is None:
        return
    failed = {report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, ())}
    kinds = {item.nodeid: _starts_processes(item) for item in getattr(session, "items", ()) if item.nodeid in failed}
    cache.set(_FAILED, dict.fromkeys(failed, False) | kinds)


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


def _to_try_again(items: list[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    cache = testers.cache_of(config)
    failed: dict[str, bool] = {} if cache is None else cache.get(_FAILED, {})
    if compute := sorted(name for name, starts_processes in failed.items() if not starts_processes):
        raise pytest.UsageError(f"a second try is for tests of processes alone, and these failed: {', '.join(compute)}")
    return [item for item in items if item.nodeid in failed]


def _has_jvm(item: pytest.Item) -> bool:
    """Another tester would start a JVM of its own for it, of twelve seconds of the processor."""
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
    """Starts processes at once: one for all tests of a tester."""
    with contextlib.closing(Prepared(tmp_path_factory.mktemp("prepared"))) as started:
        yield started


@pytest.fixture
def forked_templates(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The template processes of clusters are forked from it: a new interpreter takes a second of the processor for each
    cluster. In tests/runtime/clusters it is always so.
    """
    monkeypatch.setattr("understudy.runtime.clusters.local_launcher.start_template", prepared.start_template)
