"""docs/errors.md is true: its example runs, and it lists the errors that are exported, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import understudy
from understudy import ApiError, AskFailed, JobHandle, LocalCluster, RemoteCluster, RemoteError, StreamEnvironment

from .prepared import Prepared

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text()
EXPORTED = {
    name: value
    for name in understudy.__all__
    if isinstance(value := getattr(understudy, name), type) and issubclass(value, BaseException)
}
LISTED = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


def test_every_exported_error_is_listed_once_and_nothing_else_is() -> None:
    assert sorted(LISTED) == sorted(EXPORTED)


NUMBERS = {"three": 3, "four": 4, "six": 6, "seven": 7, "nine": 9}
BASES = re.findall(r"^\| `(\w+)` \|[^\n]*?base of (the next|these) (\w+)", PAGE, re.MULTILINE)
NAMED_BASES = re.findall(r"^\| `(\w+)` \|[^\n]*?base of ((?:`\w+`(?:, | and )?)+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("base", "where", "number"), BASES)
def test_a_base_has_the_rows_below_it_that_it_names(base: str, where: str, number: str) -> None:
    at, count = LISTED.index(base), NUMBERS[number]
    rows = LISTED[at + 1 : at + 1 + count] if where == "the next" else LISTED[at - count : at]
    below = {each.__name__ for each in _below(EXPORTED[base])} & set(EXPORTED)
    assert set(rows) <= below
    assert base == "KafkaError" or set(rows) == below


@pytest.mark.parametrize(("base", "names"), NAMED_BASES)
def test_a_base_that_names_errors_names_its_own(base: str, names: str) -> None:
    own = {each.__name__ for each in EXPORTED[base].__subclasses__()} & set(EXPORTED)
    assert set(re.findall(r"`(\w+)`", names)) == own


def test_every_error_of_the_api_is_exported() -> None:
    """Those that a client meets; what only tasks meet is exported where an operator may catch it."""
    for base in (ApiError, AskFailed, RemoteError):
        assert {base.__name__, *(each.__name__ for each in _below(base))} <= set(EXPORTED)


def _below(base: type) -> set[type]:
    return {each for child in base.__subclasses__() for each in (child, *_below(child))}


def test_names_of_failures_are_made_by_our_code() -> None:
    told = re.findall(r'^\| "(\w+)" \|', PAGE, re.MULTILINE)
    code = "\n".join(path.read_text() for path in (ROOT / "actors").rglob("*.py"))
    assert told
    for name in told:
        assert name not in EXPORTED
        assert f'"{name}"' in code or f"class {name}(" in code, name


HOLDERS = {"job": (JobHandle,), "cluster": (LocalCluster,), "client": (RemoteCluster,), "env": (StreamEnvironment,)}


@pytest.mark.parametrize("call", sorted(set(re.findall(r"`(?:await )?((?:job|cluster|client|env)\.\w+)", PAGE))))
def test_every_call_that_is_named_is_there(call: str) -> None:
    holder, name = call.split(".")
    assert any(hasattr(kind, name) for kind in HOLDERS[holder])


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+_async)`", PAGE))))
def test_every_twin_that_is_named_is_there(name: str) -> None:
    assert hasattr(JobHandle, name) or hasattr(RemoteCluster, name)


def test_every_error_says_what_it_is() -> None:
    assert [name for name, error in EXPORTED.items() if not error.__dict__.get("__doc__")] == []


@pytest.mark.processes
def test_the_example_runs(tmp_path: Path, prepared: Prepared) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "example.py").write_text(block)
    done = prepared.run("example.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (answer,) = done.stdout.splitlines()
    assert int(answer) >= 0
