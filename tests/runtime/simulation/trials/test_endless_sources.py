"""Each source that may have no end says how to bound it, or that it cannot: then only a collection is advised."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

from understudy import Source
from understudy.runtime import connectors
from understudy.runtime.simulation.trials.endless_sources import how_to_bound

ALWAYS_END = {
    "CollectionSource",
    "FileSource",
    "ScanSource",
    "SparkSource",
    "SqlSource",
    "TableSource",
}


def _sources(kind: type = Source) -> Iterator[type[Source]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith(connectors.__name__):
            yield each
            yield from _sources(each)


@pytest.fixture(scope="module")
def sources() -> dict[str, type[Source]]:
    for module in pkgutil.walk_packages(connectors.__path__, f"{connectors.__name__}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:  # of an extra that is not installed
            continue
    found = {each.__name__: each for each in _sources()}
    assert {"KafkaSource", "DeltaSource", "IcebergSource", *ALWAYS_END} <= found.keys()
    return found


def told(source: type[Source]) -> str:
    endless: Any = object.__new__(source)
    endless.bounded = False
    return how_to_bound({"events": endless}, "vertex")


def test_each_of_ours_says_it_for_itself(sources: dict[str, type[Source]]) -> None:
    bases = {each.__name__ for each in sources.values() if each.__subclasses__() and each.poll is Source.poll}
    silent = {name for name, each in sources.items() if each._how_to_bound is Source._how_to_bound}
    assert silent - bases - {"PacedSource", "IndexedSource", "SplitSource", "FedSource"} == ALWAYS_END


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("KafkaSource", "bounded=True lets it end"),
        ("DeltaSource", "leave watch_ms out"),
        ("IcebergSource", "leave watch_ms out"),
        ("SparkStreamSource", "available_now=True lets it end"),
    ],
)
def test_what_to_write_is_said(sources: dict[str, type[Source]], name: str, wanted: str) -> None:
    assert f"source 'events' never ends, so there is no result to compare: {wanted}" in told(sources[name])


@pytest.mark.parametrize(
    "name",
    ["InletSource", "PostgresChanges", "RedisStreamSource", "WebsocketSource", "SseSource", "LineSource", "HttpSource"],
)
def test_of_one_that_cannot_end_only_the_collection_is_advised(sources: dict[str, type[Source]], name: str) -> None:
    (source,) = (each for known, each in sources.items() if known.startswith(name))
    assert "no result to compare: read env.from_collection(records) in its place" in told(source)


def test_one_of_the_users_is_advised_of_bounded() -> None:
    class Ticks(Source[int]):
        bounded = False

    assert "let it have an end, with bounded = True and END from poll, or read env.from_collection" in told(Ticks)
    assert how_to_bound({}, "vertex").startswith("'vertex' never ends")
