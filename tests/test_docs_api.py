"""docs/api.md is true: it lists each public method and field of what it names, as it is called, and nothing else."""

from __future__ import annotations

import concurrent.futures
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import FunctionType
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


def is_error(name: str) -> bool:
    return isinstance(found(name), type) and issubclass(found(name), BaseException)


def unnamed(page: str) -> set[str]:
    """Public names that a page does not have in backticks; errors of `understudy` are in docs/errors.md."""
    errors = {name for name in understudy.__all__ if is_error(name)}
    return {*understudy.__all__, *testing.__all__} - errors - set(re.findall(r"`(\w+)", page))


def test_every_public_name_is_on_the_page() -> None:
    assert unnamed(PAGE) == set()


def test_a_public_name_that_is_not_on_the_page_is_missed() -> None:
    assert unnamed(PAGE.replace("`monotonous()`", "").replace("`Violation`", "")) == {"monotonous", "Violation"}


def undescribed(names: Iterable[str]) -> set[str]:
    """Classes and functions without a docstring of their own, and methods of the page's classes without any."""
    without = set()
    for name in names:
        value = found(name)
        text = inspect.getdoc(value) or ""
        if isinstance(value, type | FunctionType) and (not text or text.startswith(f"{value.__name__}(")):
            without.add(name)
        if name in SECTIONS and isinstance(value, type):
            calls = {row.partition("(")[0] for row in members(name) if "(" in row and not row.startswith("test_")}
            without |= {f"{name}.{call}" for call in calls if not inspect.getdoc(getattr(value, call))}
    return without


def test_every_public_class_function_and_method_has_a_docstring() -> None:
    assert undescribed({*understudy.__all__, *testing.__all__}) == set()


def test_a_method_without_a_docstring_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(understudy.JobHandle.cancel, "__doc__", None)
    assert undescribed({"JobHandle", "LocalCluster"}) == {"JobHandle.cancel"}


NOT_MADE_BY_USERS = {
    "ActorFuture", "Announcement", "Answer", "ClientAction", "Collector", "ConnectedStreams", "DataStream",
    "DataStreamSink", "DeadLetter", "DeadLetters", "DebugCluster", "Fault", "Inlet", "JobFuture", "JobHandle",
    "KeyedStream", "LocalRef", "NamedRef", "OperatorContext", "OperatorEdit", "Outcome", "Outlet", "Predecessor",
    "RemoteRef", "RestartLimit", "RestartStrategyConfig", "SavepointEdit", "SavepointOperator", "Sent",
    "SimulatedDisk", "StateEdit", "StateTable", "Survived", "Timers", "Translation", "TransportOptions",
    "Violation", "WindowedStream", "message",
}  # fmt: skip
"""Users get them, and make none; of `message`, a decorator, they write no parameter."""


def parameters_of(name: str) -> set[str]:
    """Of a function or constructor that no heading or row of the page has with its parameters."""
    value = found(name)
    home = value.__init__ if isinstance(value, type) else value
    if (
        re.search(rf"^(?:### |\| )`{name}\(", PAGE, re.MULTILINE)
        or not isinstance(home, FunctionType)
        or not home.__module__.startswith("understudy")
        or name in NOT_MADE_BY_USERS
        or is_error(name)
        or getattr(value, "_is_protocol", False)
    ):
        return set()
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found_there = inspect.signature(home).parameters.values()
    return {each.name for each in found_there if each.kind not in stars} - {"self"}


def undocumented(name: str, code: Iterable[str]) -> set[str]:
    """Those of its parameters that are in no code of the pages that have its name."""
    parameters = parameters_of(name)
    if not parameters:
        return set()
    there = "\n".join(text for text in code if name in text and re.search(rf"\b{name}\b", text))
    return {each for each in parameters if not re.search(rf"\b{each}\b", there)}


def in_code(text: str) -> str:
    """What stands in backticks and in blocks of code."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


PAGES = [in_code(page.read_text()) for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"]


def test_every_parameter_of_what_users_call_is_on_a_page_that_names_it() -> None:
    names = {*understudy.__all__, *testing.__all__}
    assert {name: missing for name in names if (missing := undocumented(name, PAGES))} == {}


def test_a_parameter_that_no_page_has_is_found() -> None:
    assert undocumented("SqlSink", [text.replace("db_schema", "") for text in PAGES]) == {"db_schema"}


@pytest.mark.parametrize("name", ["DataStream", "Cluster"])
def test_a_method_that_is_not_listed_is_missed(name: str) -> None:
    first, *rest = sorted(members(name))
    assert first not in rest
    assert sorted(listed(SECTIONS[name].replace(f"| `{first}` |", "| |"))) != sorted(members(name))


def test_twins_are_told_where_their_methods_are() -> None:
    for kind in (understudy.JobHandle, Cluster, understudy.RemoteCluster):
        twins = {name for name in dir(kind) if name.endswith(TWINS) and not name.startswith("submit_translated")}
        assert {name for name in twins if f"`{name}`" not in PAGE and f".{name}" not in PAGE} == set(), kind
