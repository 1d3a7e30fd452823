"""Each of the mistakes is found, and what its author reads names the place and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from . import programs
from .clusters import cluster_named
from .programs import MISTAKES, Mistake
from .trying import Found, find, problems

cloudpickle.register_pickle_by_value(programs)  # TaskManagers cannot import test modules

AT_ONCE = {"local": 4, "spark": 1}
"""So many jobs run side by side: most of the time of each is spent waiting. A job takes both of Spark's cores."""

Look = Callable[[Mistake], Found]

ALL = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name.replace(" ", "-"))


def _made_on(name: str, folder: Path, *, checkpoints: bool, session: Any = None) -> Iterator[Look]:
    """All mistakes made on one cluster, and what was found of each."""
    with cluster_named(name, session) as cluster, ThreadPoolExecutor(AT_ONCE[name]) as threads:

        def made(mistake: Mistake) -> Found:
            own = folder / mistake.name.replace(" ", "-")
            own.mkdir()
            return find(mistake, cluster, own, checkpoints=checkpoints, patience=100)

        found = {each.name: threads.submit(made, each) for each in MISTAKES}
        yield lambda mistake: found[mistake.name].result()


@pytest.fixture(scope="module", params=[False, True], ids=["without-checkpoints", "with-checkpoints"])
def on_local_processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Look]:
    yield from _made_on("local", tmp_path_factory.mktemp("mistakes"), checkpoints=request.param)


@pytest.fixture(scope="module")
def on_spark(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Look]:
    yield from _made_on("spark", tmp_path_factory.mktemp("mistakes"), checkpoints=True, session=spark)


@ALL
@pytest.mark.processes
def test_on_local_processes(on_local_processes: Look, mistake: Mistake) -> None:
    _says_enough(mistake, on_local_processes(mistake))


@ALL
@pytest.mark.parametrize("checkpoints", [False, True], ids=["without-checkpoints", "with-checkpoints"])
def test_in_the_simulator(tmp_path: Path, mistake: Mistake, checkpoints: bool) -> None:
    with cluster_named("simulated") as cluster:
        _says_enough(mistake, find(mistake, cluster, tmp_path, checkpoints=checkpoints))


@ALL
@pytest.mark.spark
def test_on_spark(on_spark: Look, mistake: Mistake) -> None:
    _says_enough(mistake, on_spark(mistake))


def _says_enough(mistake: Mistake, found: Found) -> None:
    missing = [each for each in problems(mistake, found) if not each.startswith("took")]  # no test asserts a time
    assert not missing, f"{', '.join(missing)}; found while {found.when}:\n{found.text}"
