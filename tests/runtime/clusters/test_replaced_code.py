"""Functions that a test has replaced in a module: the job's processes import the module's file, and submit says so."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from understudy.actors.tasks.job_program import JobProgram
from understudy.runtime.clusters import replaced_code
from understudy.runtime.clusters.module_sources import with_sources
from understudy.runtime.clusters.replaced_code import replaced_in

from ...meanwhile import at_each_collection

TEXT = """
import functools
import os
from os.path import join as fetch_path

def fetch(n):
    return n

class Client:
    def get(self, n):
        return n

def logged(function):
    def call(*values):
        return function(*values)
    return call

@logged
def decorated(n):
    return n

def reassigned(n):
    return n
reassigned = logged(reassigned)

if os.name == "nowhere":
    def either(n):
        return 1
else:
    def either(n):
        return 2

add = functools.partial(fetch, 1)
client = Client()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "service_of_test.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("service_of_test")
    sys.modules.pop("service_of_test", None)


def found(module: ModuleType) -> list[str]:
    return replaced_in(module, TEXT.encode)


def test_a_module_as_it_was_imported_has_nothing_replaced(module: ModuleType) -> None:
    assert found(module) == []


def test_names_that_come_meanwhile_are_no_error(module: ModuleType) -> None:
    """Another thread sets a global of the module for the first time, or an attribute of its class."""
    with at_each_collection(lambda name: (setattr(module, name, 1), setattr(module.Client, name, 1))):
        for _ in range(100):
            assert found(module) == []


def fake(n: int) -> int:
    return -n


class FakeClient:
    """In place of another one."""


@pytest.mark.parametrize(
    ("name", "value"),
    [("fetch", fake), ("fetch", lambda n: 7), ("fetch", mock.Mock()), ("Client", FakeClient), ("os", mock.MagicMock())],
)
def test_what_was_put_in_its_place_is_found(
    module: ModuleType, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    assert found(module) == [name]
    monkeypatch.undo()
    assert found(module) == []


def test_a_method_too(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Client, "get", lambda self, n: "fake")
    assert found(module) == ["Client.get"]


@pytest.mark.parametrize("name", ["decorated", "reassigned", "either", "add", "fetch_path"])
def test_what_the_file_may_have_made_so_is_left_alone(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fake)
    assert found(module) == []


@pytest.mark.parametrize("name", ["fetch_path", "decorated"])
def test_a_file_is_parsed_only_for_a_name_that_it_defines_without_a_decorator(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each submit looks at all modules of a project, hundreds, and a quarter of them have some that seem strange."""
    monkeypatch.setattr(module, name, fake)
    monkeypatch.setattr(replaced_code.ast, "parse", lambda _: pytest.fail("parsed"))  # type: ignore[attr-defined]
    assert found(module) == []


@pytest.mark.parametrize(
    "text",
    [
        "limits = dict(\n    a=1,\n)\ndef found(n):\n    return n\n",
        "async  def found(n):\n    return n\n",
        pytest.param(
            "def found[T](n: T) -> T:\n    return n\n",
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no such syntax before 3.12"),
        ),
    ],
)
def test_however_a_definition_is_written(text: str) -> None:
    module = ModuleType("service_of_test")
    exec(text, vars(module))
    vars(module)["found"] = fake
    assert replaced_in(module, text.encode) == ["found"]


def test_a_mock_that_the_module_has_made_itself_is_left_alone(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a module of tests does, which has operators too."""
    monkeypatch.setattr(module, "client", mock.Mock())
    assert found(module) == []


def test_submit_says_what_the_jobs_processes_will_run(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = JobProgram({}, {}, b"", (), 1, modules={"service_of_test": "test"})
    with_sources(program)
    assert "replaced" not in caplog.text
    monkeypatch.setattr(module, "fetch", fake)
    with_sources(program)
    assert "fetch of module 'service_of_test' has been replaced in this process, as by monkeypatch" in caplog.text
    assert "LocalCluster(debug=True)" in caplog.text
