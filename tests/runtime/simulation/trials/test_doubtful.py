"""What is doubtful in a job's code is named, though every history goes well."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from understudy import Operator, StreamEnvironment
from understudy.runtime.simulation.trials.causes import Causes
from understudy.testing import assert_exactly_once

ROUTES: dict[int, int] = {}
LOG = Path("/dev/null")


def elapsed(number: int) -> tuple[int, int]:
    """Always 0 seconds."""
    return number, int(time.time() - time.time())


def noted(number: int) -> int:
    LOG.write_text(str(number))
    return number


def stored(number: int) -> int:
    sqlite3.connect(":memory:").close()
    return number


def drawn(number: int) -> int:
    return number + int(random.random())


def routed(number: int) -> int:
    ROUTES[number] = 1
    return number


class Seen:
    """As programs have one in a module."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()

    def is_new(self, number: int) -> bool:
        self._numbers.add(number)
        return True


SEEN = Seen()


def remembered(number: int) -> int:
    return number if SEEN.is_new(number) else -1


def bucket(number: int) -> int:
    """The same in each process: of a number."""
    return number + 0 * hash((number, 1))


@dataclass(frozen=True)
class Hashable:
    number: int

    def __hash__(self) -> int:
        return hash(self.number)


def plain(number: int) -> int:
    return Hashable(number).number


class Config:
    def __init__(self) -> None:
        self.values: dict[str, int] = {"limit": 3}

    def update(self, name: str, value: int) -> None:
        self.values[name] = value


CONFIG = Config()


def limited(number: int) -> int:
    """Its `update` is that of a dict of its own."""
    counted: dict[str, int] = {}
    counted.update(number=number)
    return min(counted["number"], CONFIG.values["limit"])


def _survived(function: Callable[[int], Any]) -> Any:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(6)).map(function).collect(name="out")
    return assert_exactly_once(env, histories=1)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (elapsed, "elapsed calls time.time ("),
        (noted, "noted calls Path.write_text ("),
        (stored, "stored calls sqlite3.connect ("),
        (drawn, "drawn calls random.random ("),
        (routed, "routed changes the dict 'ROUTES' of your program ("),
        (remembered, "is_new changes the set 'SEEN._numbers' of your program ("),
    ],
)
def test_it_is_named(function: Callable[[int], Any], told: str) -> None:
    survived = _survived(function)
    assert survived.doubtful[0].startswith(told)
    assert f"; not found wrong, but doubtful (.doubtful): {told}{__file__}:" in str(survived)


def test_what_to_do_is_said() -> None:
    assert "from self.context.clock.wall_ms()" in _survived(elapsed).doubtful[0]


def by_route(number: int) -> int:
    return ROUTES.setdefault(number, 0)


def test_a_key_function_is_looked_at_too() -> None:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(6)).key_by(by_route).map(plain).collect(name="out")
    told = "by_route changes the dict 'ROUTES' of your program ("
    assert any(each.startswith(told) for each in assert_exactly_once(env, histories=1).doubtful)


@pytest.mark.parametrize("function", [plain, bucket, limited])
def test_a_job_without_it_is_not(function: Callable[[int], Any]) -> None:
    assert "doubtful" not in str(_survived(function))


def test_a_hash_is_named_only_where_something_has_gone_wrong() -> None:
    """Its argument is not known from the code, and of a number it is the same in each process."""
    causes, holder = Causes(), cast("Operator", SimpleNamespace(function=bucket))
    causes.look_at_code(holder)
    assert causes.in_code == []
    (told,) = causes.found
    assert told.startswith("bucket calls hash (")
    assert told.endswith("a restart. Use zlib.crc32(text.encode())")
