"""The public face: users need `understudy` and `understudy.testing` alone, and durations are named alike."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NewType

import pytest

import understudy
from understudy import testing

from .parsed import parsed

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LIBRARY = [path for floor in ("messages", "state", "actors", "runtime", "src") for path in (ROOT / floor).rglob("*.py")]

NO_PUBLIC_ERRORS = {
    # they reach users as text: as the name of a failure's cause, or in the text of an error that is public
    "InletIsOver": "its text is that of InletClosed",
    "UnknownChannel": "fails a task; JobFailed shows its name",
    "HttpError": "an answer of the REST interface, which has its text",
    "NotRestartable": "the same",
    "JobManagerAway": "the same",
    "UserCodeError": "wraps what user code raised; JobFailed shows that, and has it as its cause with debug=True",
    "LostLeadership": "stops a JobManager that does not lead any more; clients are answered by the one that does",
    "ForgedSubmission": "its text is that of CannotTakeOver",
    "NoZooKeeperHere": "the command line shows its text",
    "ChannelBroken": "fails a task, which is restored; JobFailed shows its name",
    "NoResourceAvailable": "fails a job; JobFailed shows its name",
    "InvalidJobGraph": "the JobManager refuses a graph that the API never makes",
    "NotShippable": "`submit` raises NotPicklable in its place",
    "MalformedMessage": "bytes from outside: counted, logged, or named by a RemoteActorError",
    "MissingSavepoint": "its text is that of CannotRestore or SavepointNotDisposed",
    "OutsideRoot": "its text is that of CannotRestore, SavepointFailed or SavepointNotDisposed",
    "ForgedPointer": "its text is that of CannotRestore or SavepointNotDisposed",
    "WrongSavepointStore": "its text is that of CannotRestore, SavepointFailed or SavepointNotDisposed",
    "NoFileSystem": "its text is that of UnwritableRoot, UnknownFileSystem or CorruptState",
    "UnknownSavepointRoot": "its text is that of CannotRestore or SavepointNotDisposed",
    "UserCodeFailed": "the command line prints it",
    "Unsettled": "a contract of the kit fails with its text",
    # for our own code
    "Killed": "the kit's way to end a thread; nothing but the kit may catch it",
    "LedgerAway": "of a simulated ledger, into the sink of our own job",
    "NotThere": "the same",
    "IllegalTransition": "a broken invariant",
    "Unusual": "never leaves messages/",
    "UnknownBackend": "StreamEnvironment raises InvalidSetting before it",
    "WrongValue": "never leaves state/: WrongStateType is raised in its place",
    "NoSuchValue": "never leaves state/",
    "_Misfit": "never leaves state/",
    "CursorRefused": "never leaves the JobManager: a base",
    "NoCursorOfThis": "never leaves the JobManager: a reader gets InvalidCursor",
    "understudy.state.outlets.lineage.CursorForked": "never leaves the JobManager: a reader gets the public one",
    "understudy.state.kinds.schema_fit.SchemaMismatch": "never leaves state/: StateIncompatible is raised",
    "Closed": "ends a thread of a source whose attempt is over",
    "MalformedReplication": "a bug, or a server of a later protocol; JobFailed shows its name",
    "NotAScan": "a DataFrame is read through Spark then",
    "FeedClosed": "never leaves the thread of a source",
    "LookTooLong": "never leaves a look at submit, which logs it",
    "Busy": "never leaves the thread of a source: an HTTP endpoint is asked again, and then it is OutsideUnavailable",
    "AnswerLost": "never leaves clusters/: NoAnswer and SavepointFailed are raised",
    "NoLeader": "never leaves clusters/: NoJobManager is raised",
    "NotShared": "reaches users as the text of CheckpointFailed",
    "EarlierFilesGone": "is logged, and a full checkpoint is taken in its place",
    "NotLive": "the chaos runs report it",
    "_Stopped": "ends a query of Spark whose job is over",
    "_SteppedDown": "the failover run counts it",
    "CannotMount": "the chaos runs report it",
    "TornWrite": "the simulated disk's answer to itself",
    "ProcessKilled": "the simulator's way to end a process; nobody may catch it",
}
"""Errors without a public name, and why nobody needs one."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(understudy.__path__, "understudy."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def errors() -> set[type[BaseException]]:
    return {
        value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__.startswith("understudy.")
    }


def public_values() -> dict[str, Any]:
    return {name: getattr(home, name) for home in (understudy, testing) for name in home.__all__}


def test_every_error_is_public_or_says_why_nobody_needs_it() -> None:
    public = set(map(id, public_values().values()))
    hidden = [error for error in errors() if id(error) not in public]
    names = {error.__name__ for error in hidden} | {f"{error.__module__}.{error.__name__}" for error in hidden}
    unnamed = [
        f"{error.__module__}.{error.__name__}"
        for error in hidden
        if not {error.__name__, f"{error.__module__}.{error.__name__}"} & set(NO_PUBLIC_ERRORS)
    ]
    assert unnamed == []
    assert set(NO_PUBLIC_ERRORS) <= names, "a reason for an error that there is not, or that is public"


@pytest.mark.parametrize("home", [understudy, testing], ids=lambda home: home.__name__)
def test_the_public_names_are_the_same_to_the_type_checker(home: ModuleType) -> None:
    assert home.__file__
    text = Path(home.__file__).read_text()
    shown = {
        name: where
        for where, name, again in re.findall(r"^    from \.([\w.]+) import (\w+) as (\w+)$", text, re.MULTILINE)
        if name == again
    }
    assert shown == home._HOME_OF
    assert not any(isinstance(getattr(home, name), ModuleType) for name in shown)
    assert sorted(dir(home)) == sorted({*home.__all__, *(["__version__"] if home is understudy else [])})


def test_a_name_has_one_public_home() -> None:
    assert not set(understudy.__all__) & set(testing.__all__)


# -- pages


def deep_imports(text: str) -> list[str]:
    """The imports that go below `understudy` and `understudy.testing`. A page may show what is no program."""
    imports = re.findall(r"^\s*((?:from|import) understudy\.([\w.]+).*)$", text, re.MULTILINE)
    return [line for line, module in imports if module != "testing"]


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_what_users_read_imports_from_understudy_and_its_testing_alone(page: Path) -> None:
    text = page.read_text()
    blocks = [text] if page.suffix == ".py" else re.findall(r"```python[^\n]*\n(.*?)```", text, re.DOTALL)
    assert [each for block in blocks for each in deep_imports(block)] == []


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_what_users_read_imports_names_that_there_are(page: Path) -> None:
    public = {"understudy": {*understudy.__all__, "__version__", "testing"}, "understudy.testing": {*testing.__all__}}
    for home, names in re.findall(
        r"^\s*from (understudy[.\w]*) import (\([^)]*\)|[^\n]*)", page.read_text(), re.MULTILINE
    ):
        wanted = set(re.findall(r"\w+", re.sub(r"#[^\n]*", "", names)))
        assert home not in public or wanted <= public[home], wanted - public[home]


@pytest.mark.parametrize(
    "code",
    ["from understudy.state import ValueState", "import understudy.runtime.api", "import understudy.actors as a"],
)
def test_a_deep_import_is_seen(code: str) -> None:
    assert deep_imports(code) == [code]


def test_no_text_of_the_library_names_a_deep_import() -> None:
    """Errors and reports show programs too; what starts a TaskManager is no text for users."""
    found = [
        (path.name, text)
        for path in LIBRARY
        for _, text in parsed(path.read_text()).texts
        if re.search(r"(from|import) understudy\.(?!testing\b)\w+(?!\w*, not)", text)
        and "import understudy." not in text.split(", not ")[0]
    ]
    assert [name for name, _ in found] == ["local_launcher.py"], found


# -- durations: a call that waits takes `timeout` in seconds; every other duration is in milliseconds, and ends in `_ms`

DURATION = re.compile(
    r"(^|_)(timeout|wait|waits|seconds?|secs?|s|millis|milliseconds|ms|delay|interval|pause|duration|latency|patience|"
    r"within|period|elapsed|age|uptime|every|linger|flush|deadline|moment|time)(_|$)"
)


def is_well_named(name: str, annotation: str) -> bool:
    """Whether a parameter or field that may be a duration says its unit as all do."""
    is_number = re.search(r"\b(int|float)\b", annotation) is not None
    if not is_number or not DURATION.search(name) or "_per_" in name:
        return True
    return name == "timeout" or name.endswith("_ms")


def parameters(name: str, value: Any) -> Iterator[tuple[str, str, str]]:
    """Where, name and annotation: of a function, of all public methods of a class, and of a class's fields."""
    if isinstance(value, type):
        for field, annotation in inspect.get_annotations(value).items():
            if not field.startswith("_"):
                yield name, field, str(annotation)
        for method, function in inspect.getmembers(value, callable):
            if method == "__init__" or not method.startswith("_"):
                yield from of_function(f"{name}.{method}", function)
    elif callable(value):
        yield from of_function(name, value)


def of_function(where: str, function: Callable[..., Any]) -> Iterator[tuple[str, str, str]]:
    if isinstance(function, NewType) or not (getattr(function, "__module__", None) or "").startswith("understudy."):
        return
    for parameter in inspect.signature(function).parameters.values():
        yield where, parameter.name, str(parameter.annotation)


def test_timeouts_are_seconds_and_every_other_duration_says_ms() -> None:
    found = [
        f"{where}: {name}: {annotation}"
        for public, value in public_values().items()
        for where, name, annotation in parameters(public, value)
        if not is_well_named(name, annotation)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["wait", "answer_seconds", "timeout_s", "delay", "ms", "interval_s", "time"])
def test_a_duration_without_its_unit_is_seen(name: str) -> None:
    def planted(duration: float) -> None: ...

    planted.__module__ = "understudy.planted"
    planted.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation="float | None")]
    )
    assert [not is_well_named(*rest) for _, *rest in parameters("planted", planted)] == [True]


@pytest.mark.parametrize(
    ("name", "annotation"),
    [("timeout", "float"), ("delay_ms", "int"), ("wait", "bool"), ("records_per_second", "float"), ("task", "int")],
)
def test_what_is_no_duration_or_is_named_well_is_let_pass(name: str, annotation: str) -> None:
    assert is_well_named(name, annotation)


_OPTIONAL = (
    *("pandas", "numba", "pyspark", "pyarrow.acero", "fastapi", "polars", "duckdb", "s3fs", "httpx", "websockets"),
    *("confluent_kafka", "fastavro", "sqlalchemy", "psycopg", "deltalake", "pyiceberg", "redis"),
)


def test_an_import_brings_no_library_that_most_jobs_do_not_need() -> None:
    """Half a second each, in the user's process and in each of the cluster's."""
    code = (
        "import sys, understudy, understudy.testing\n"
        "for name in understudy.__all__: getattr(understudy, name)\n"
        f"print(*(each for each in {_OPTIONAL} if each in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
