"""docs/api.md is true: it lists each public method and field of what it names, as it is called, and nothing else."""

from __future__ import annotations

import concurrent.futures
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import understudy
from understudy import Cluster, testing

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "api.md").read_text()
SECTIONS = dict(re.findall(r"^### `(\w+)[^\n]*\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
"""The text of each class by its name."""
INHERITED = {
    "KeyedStream": "DataStream",
    "LocalCluster": "Cluster",
    "SparkCluster": "Cluster",
    "SimulatedCluster": "Cluster",
    "StandaloneCluster": "RemoteCluster",
}
"""What is listed there is not repeated here."""
NOT_FOR_USERS = {
    "Cluster": {"translate", "submit_translated", "submit_translated_async", "ask_job_manager"},
    "RemoteCluster": {"ask_job_manager"},
    "JobHandle": {"lost", "before_close", "wait_as_cluster"},
    "SavepointOperator": {"decode_runs", "is_incremental"},
    "StateTable": {"conformed", "described", "identified", "only_key"},
    "JobFuture": {"cancel", "set_result", "set_exception", "set_running_or_notify_cancel"},
}
"""What clusters, and the machinery below a future, use of each other."""
TWINS = "_async"


def found(name: str) -> Any:
    return getattr(understudy if name in understudy.__all__ else testing, name)


def shown(name: str, value: Any) -> str:
    """A method as the page shows it: names and plain defaults."""
    parameters, star = [], False
    for each in inspect.signature(value).parameters.values():
        if each.name in ("self", "cls", "_cls"):
            continue
        star = star or each.kind is each.VAR_POSITIONAL
        if each.kind is each.KEYWORD_ONLY and not star:
            parameters.append("*")
            star = True
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        is_plain = isinstance(each.default, int | float | str | None)
        default = "" if each.default is each.empty else f"={each.default!r}" if is_plain else "=…"
        parameters.append(f"{mark}{each.name}{default}")
    return f"{name}({', '.join(parameters)})"


def members(name: str) -> Iterator[str]:
    """The rows that the page is to have for a class."""
    kind = found(name)
    hidden = set().union(*(NOT_FOR_USERS.get(each.__name__, set()) for each in kind.__mro__))
    inherited = found(INHERITED[name]) if name in INHERITED else None
    for member in dir(kind):
        value = inspect.getattr_static(kind, member)
        home = next(each for each in kind.__mro__ if member in vars(each))
        if (
            member.startswith("_")
            or member in hidden
            or (inherited is not None and issubclass(inherited, home))
            or not (home.__module__.startswith("understudy") or home is concurrent.futures.Future)
            or (member.endswith(TWINS) and member != "wait_async")
            or (inherited is not None and member in vars(inherited))
        ):
            continue
        if isinstance(value, property):
            yield member
        elif callable(value) or isinstance(value, classmethod | staticmethod):
            yield shown(member, getattr(kind, member))
    if is_dataclass(kind) or hasattr(kind, "_fields") or issubclass(kind, dict):
        own = set(dir(dict)) if issubclass(kind, dict) else set()
        yield from (field for field in get_type_hints(kind) if not field.startswith("_") and field not in own)


def listed(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_section_lists_each_public_member_once_as_it_is_called(name: str) -> None:
    assert sorted(listed(SECTIONS[name])) == sorted(set(members(name)))


@pytest.mark.parametrize(
    ("heading", "name"),
    [(text, name) for text, name in re.findall(r"^### `((\w+)\([^`]*\))`", PAGE, re.MULTILINE)],
)
def test_a_constructor_is_called_as_its_heading_says(heading: str, name: str) -> None:
    kind = found(name)
    assert heading == shown(name, kind.__new__ if hasattr(kind, "_fields") else kind.__init__)


@pytest.mark.parametrize(
    "call",
    [row for text in re.findall(r"^## Functions[^\n]*\n(.*?)(?=^##)", PAGE, re.M | re.S) for row in listed(text)],
)
def test_a_function_is_called_as_the_page_says(call: str) -> None:
    name = call.partition("(")[0]
    assert call == shown(name, found(name))


def test_the_page_has_a_section_for_what_users_hold_in_their_hands() -> None:
    events = {
        "JobStatusChanged",
        "CheckpointCompleted",
        "CheckpointAborted",
        "TaskManagerChanged",
        "FirstBatchProcessed",
    }
    streams = {"StreamEnvironment", "DataStream", "KeyedStream", "ConnectedStreams", "DataStreamSink"}
    clusters = {"Cluster", "LocalCluster", "SparkCluster", "RemoteCluster", "SimulatedCluster", "ClusterSettings"}
    jobs = {"JobHandle", "JobFuture", "JobDetails", "TaskMetrics", "CheckpointHistory", "FailureCause"}
    tests = {"OperatorHarness", "TransactionalLog", "Survived", "TrialOptions"}
    assert events | streams | clusters | jobs | tests <= set(SECTIONS)


def test_every_fault_and_every_error_of_the_tests_is_named() -> None:
    errors = {
        name for name in testing.__all__ if isinstance(found(name), type) and issubclass(found(name), BaseException)
    }
    assert {kind.__name__ for kind in (*testing.FAULTS, *testing.ACTIONS)} | errors <= set(re.findall(r"`(\w+)", PAGE))


@pytest.mark.parametrize("name", ["DataStream", "Cluster"])
def test_a_method_that_is_not_listed_is_missed(name: str) -> None:
    first, *rest = sorted(members(name))
    assert first not in rest
    assert sorted(listed(SECTIONS[name].replace(f"| `{first}` |", "| |"))) != sorted(members(name))


def test_twins_are_told_where_their_methods_are() -> None:
    for kind in (understudy.JobHandle, Cluster, understudy.RemoteCluster):
        twins = {name for name in dir(kind) if name.endswith(TWINS) and not name.startswith("submit_translated")}
        assert {name for name in twins if f"`{name}`" not in PAGE and f".{name}" not in PAGE} == set(), kind
