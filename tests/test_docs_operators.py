"""docs/operators.md shows what operators and sources may define, with the parameters that they are called with."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from understudy import Clock, KeyedOperator, Operator, Source
from understudy.actors.operators import OperatorContext
from understudy.runtime.connectors.files.file_writers import FILE_FORMATS

from .prepared import Prepared

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "operators.md").read_text()


def test_what_an_operator_may_define_is_asked_of_it_as_shown() -> None:
    (block,) = re.findall(r"```python\nclass Operator\(Actor\):(.*?)```", PAGE, re.DOTALL)
    shown = re.findall(r"def (\w+)\((.*?)\)", block)
    assert len(shown) > 8
    for name, parameters in shown:
        hook = getattr(KeyedOperator if name == "process" else Operator, name)  # an Operator need not have one
        found = list(inspect.signature(hook).parameters)
        assert [each.strip() for each in parameters.split(",")] == found, name


def test_the_clock_has_the_methods_that_are_said() -> None:
    (shown,) = re.findall(r"`self.context.clock` has two methods: (.*?)\n", PAGE)
    methods = [name for name, value in vars(Clock).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert re.findall(r"`(\w+)\(\)`", shown) == methods


@pytest.mark.processes
def test_the_example_of_files_writes_them(tmp_path: Path, prepared: Prepared) -> None:
    (program,) = re.findall(r"```python\n(import pyarrow as pa\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "files.py").write_text(program)
    done = prepared.run("files.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (columns,) = (tmp_path / "out" / "parquet").glob("part-*.parquet")
    assert pq.read_table(columns).to_pylist() == [{"origin": "JFK", "delay": None}, {"origin": "EWR", "delay": 11.0}]
    (text,) = (tmp_path / "out" / "csv").glob("part-*.csv")
    assert text.read_text().splitlines() == ['"origin","delay"', '"JFK",', '"EWR",11']
    (lines,) = (tmp_path / "out" / "jsonl").glob("part-*.jsonl")
    assert lines.read_text().splitlines() == ['{"origin": "JFK", "delay": null}', '{"origin": "EWR", "delay": 11}']


@pytest.mark.processes
@pytest.mark.parametrize("tag", ["BROKEN", "ALONE"])
def test_the_examples_of_side_outputs_and_of_two_inputs_print_what_is_said(
    tag: str, tmp_path: Path, prepared: Prepared
) -> None:
    examples = re.findall(r"```python\n(from understudy import KeyedOp.*?)```\n\n    (.*?)\n", PAGE, re.DOTALL)
    ((program, said),) = [each for each in examples if f"{tag} = OutputTag" in each[0]]
    (tmp_path / "sides.py").write_text(program)
    done = prepared.run("sides.py", folder=tmp_path)
    assert done.stdout.splitlines() == [said], done.stderr


@pytest.mark.processes
def test_the_source_fed_by_a_thread_gives_all(tmp_path: Path, prepared: Prepared) -> None:
    (program,) = re.findall(r"```python\n(import queue\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "page.py").write_text(program)
    done = prepared.run("page.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"print\(.*# (.*)", program)
    assert done.stdout.splitlines() == [said]


def test_the_formats_of_files_are_those_there_are() -> None:
    (table,) = re.findall(r"\| `format` \|.*?\n\n", PAGE, re.DOTALL)
    assert tuple(re.findall(r'^\| `"(\w+)"`', table, re.MULTILINE)) == FILE_FORMATS


def test_the_context_has_what_is_said() -> None:
    (shown,) = re.findall(r"an `OperatorContext`: (.*?)\)", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", shown)) == {field.name for field in dataclasses.fields(OperatorContext)}


def test_sources_have_the_methods_that_are_said() -> None:
    (paragraph,) = re.findall(r"\*\*Sources\*\*(.*?)\nEach subtask", PAGE, re.DOTALL)
    shown = re.findall(r"`(\w+)\((.*?)\)", paragraph)
    assert {name for name, _ in shown} >= {"poll", "offset", "seek", "rescale"}
    for name, parameters in shown:
        assert list(inspect.signature(getattr(Source, name)).parameters)[1:] == [
            each.strip() for each in parameters.split(",") if each
        ]
