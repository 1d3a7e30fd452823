"""docs/service.md, "Out of a running job": its program runs, and what it names is there."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

import understudy
from understudy import DataStream, JobHandle, Outlet, OutletError, RemoteCluster

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "service.md").read_text()
(SECTION,) = re.findall(r"^## Out of a running job\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
(PROGRAM,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.mark.processes
def test_the_program_takes_each_alert_once(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "page.py").write_text(PROGRAM)
    done = prepared.run("page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"print\(.*# (.*)", PROGRAM)
    assert done.stdout.splitlines() == [said]
    noted = json.loads((tmp_path / "notebook.json").read_text())
    assert sorted(noted["alerts"]) == sorted(list(range(990, 1000)) * 20)


@pytest.mark.parametrize(
    ("call", "method"),
    [
        ("to_outlet", DataStream.to_outlet),
        ("job.outlet", JobHandle.outlet),
        ("outlet.read", Outlet.read),
        ("outlet.read_async", Outlet.read_async),
        ("client.outlet", RemoteCluster.outlet),
    ],
)
def test_calls_have_the_parameters_that_are_said(call: str, method: object) -> None:
    (shown,) = re.findall(rf"[`\s]{re.escape(call)}\(([^)]*)\)`[^\n]*\|", SECTION)
    said = dict(tuple(each.split("=")) if "=" in each else (each, "") for each in shown.split(", "))
    found = {
        name: "" if each.default is each.empty else each.default
        for name, each in inspect.signature(method).parameters.items()  # type: ignore[arg-type]
        if name != "self"
    }
    assert list(said) == list(found)
    for name, default in said.items():
        assert (eval(default) if default else "") == found[name], name


def test_the_errors_of_outlets_are_listed() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", SECTION, re.MULTILINE))
    assert listed == {kind.__name__ for kind in OutletError.__subclasses__()}
    assert listed <= set(understudy.__all__)
