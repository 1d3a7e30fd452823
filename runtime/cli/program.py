"""Program: what `module:build` names, loaded and called; its StreamEnvironment.

`build` is a function that returns a StreamEnvironment, or is one. It is imported as any module is, so that TaskManagers
import the same one: the folder of a file, or else the working directory, is put at the end of `sys.path`, as it is on
theirs. An error of the user's code is shown with the user's own frames only; one of this package's own with a line for
each of its causes that says something new.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import click

from ...actors.failure import chain_of
from ...messages import those_there_are
from ...messages.attributes import attributes_of
from ...messages.own_annotations import signature_of
from ...messages.shown_url import url_shown
from ..api.environment import StreamEnvironment
from .program_meant import program_meant

_PACKAGE = Path(__file__).parents[2]
_NOT_THEIRS = (str(Path(__file__)), "<frozen importlib", str(Path(importlib.__file__).parent))


class UserCodeFailed(click.ClickException):
    """The user's code raised; the message is its traceback."""

    def __init__(self, doing: str, error: Exception) -> None:
        super().__init__(f"{doing} raised {type(error).__name__}\n{''.join(_traceback(error)).rstrip()}")


@dataclass(frozen=True, slots=True)
class Program:
    """A loaded `module:build`."""

    spec: str
    name: str
    """The module's, without its packages: what the job is called when the user says nothing else."""
    target: Any

    @property
    def wants_spark(self) -> bool:
        """Whether `build` cannot be called without a SparkSession."""
        spark = _parameters(self.target).get("spark")
        return spark is not None and spark.default is inspect.Parameter.empty

    def environment(self, arguments: Sequence[str], spark: Any = None) -> StreamEnvironment:
        """Call it. `spark` is passed to a parameter of that name. Raises ClickException, UserCodeFailed."""
        built = self.target
        if not isinstance(built, StreamEnvironment):
            built = self._call(arguments, spark)
        elif arguments:
            raise click.ClickException(f"{self.spec} is a StreamEnvironment and takes no arguments, found {arguments}")
        if not isinstance(built, StreamEnvironment):
            forgotten = ": is `return env` missing?" if built is None else ""
            raise click.ClickException(
                f"{self.spec} returned {_described(built)}; wanted a StreamEnvironment{forgotten}"
            )
        return built

    def _call(self, arguments: Sequence[str], spark: Any) -> Any:
        if self.wants_spark and spark is None:
            raise click.ClickException(f"{self.spec} takes a SparkSession: run it with --cluster spark")
        named = {"spark": spark} if spark is not None and "spark" in _parameters(self.target) else {}
        try:
            signature_of(self.target).bind(*arguments, **named)
        except TypeError as error:
            signature = signature_of(self.target)
            advice = "its arguments come after --"
            if not arguments and any(map(_is_environment, signature.parameters.values())):
                advice = "it makes its environment itself (env = StreamEnvironment()), and returns it"
            raise click.ClickException(
                f"{self.spec} is called as build{signature} and was given {list(arguments)}: {error}; {advice}"
            ) from error
        try:
            return self.target(*arguments, **named)
        except Exception as error:
            raise UserCodeFailed(self.spec, error) from error


def load_program(spec: str) -> Program:
    """Import what `spec` names. Raises UsageError for another form than module:build or file.py:build,
    ClickException for what is not there, UserCodeFailed for what fails while it is imported.
    """
    where, colon, attribute = spec.rpartition(":")
    if not (colon and where and attribute):
        raise click.UsageError(f"wanted module:build or path/to/file.py:build, found {spec!r}{program_meant(spec)}")
    module = (_import_file if where.endswith(".py") or os.sep in where else _import_module)(where, attribute)
    target: Any = module
    for part in attribute.split("."):
        if not hasattr(target, part):
            if (file := getattr(module, "__file__", "built in")) is None:
                raise click.ClickException(
                    f"{where} is a folder without a module; name a file in it, as in {where}/job.py:{attribute}"
                )
            raise click.ClickException(f"{where} ({file}) has no {attribute!r}{_candidates(module, part)}")
        target = getattr(target, part)
    if not isinstance(target, StreamEnvironment) and not callable(target):
        raise click.ClickException(
            f"{spec} is {_described(target)}; wanted a function that returns a StreamEnvironment"
        )
    return Program(spec, module.__name__.rpartition(".")[2], target)


def _import_module(name: str, attribute: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise click.ClickException(
                f"no module {name!r} in {Path.cwd()} or on the Python path; a file is named as path/to/file.py:build"
                f"{program_meant(name, attribute)}"
            ) from error
        raise UserCodeFailed(f"importing {name}", error) from error
    except Exception as error:
        raise UserCodeFailed(f"importing {name}", error) from error


def _import_file(path: str, attribute: str) -> ModuleType:
    file = Path(path).resolve()
    if not file.is_file():
        raise click.ClickException(
            f"no file {path} (looked for {file}): wanted path/to/file.py:build, or module:build"
            f"{program_meant(path, attribute)}"
        )
    if file.suffix != ".py":
        raise click.ClickException(f"{path} is no Python file: wanted path/to/file.py:build, or module:build")
    if not file.stem.isidentifier():
        raise click.ClickException(f"{path} cannot be imported: {file.stem!r} is no module name; rename the file")
    _add_to_path(file.parent)
    try:
        module = importlib.import_module(file.stem)
    except Exception as error:
        raise UserCodeFailed(f"importing {path}", error) from error
    if module.__file__ is None or Path(module.__file__).resolve() != file:
        raise click.ClickException(
            f"{path} cannot be imported: another module is called {file.stem!r} ({module.__file__ or 'built in'}); "
            "rename the file"
        )
    return module


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _parameters(target: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(signature_of(target).parameters)
    except (TypeError, ValueError):
        return {}


def _is_environment(parameter: inspect.Parameter) -> bool:
    return parameter.name == "env" or parameter.annotation in (StreamEnvironment, StreamEnvironment.__name__)


def _traceback(error: Exception) -> list[str]:
    frames = _own_frames(error.__traceback__)
    if type(error).__module__.partition(".")[0] != _PACKAGE.name:
        return traceback.format_exception(type(error), error, frames)
    theirs = [frame for frame in traceback.extract_tb(frames) if not frame.filename.startswith(f"{_PACKAGE}{os.sep}")]
    heading = ["Traceback (most recent call last):\n"] if theirs else []
    lines = [f"{type(error).__name__}: {error}\n"]
    for step in chain_of(error)[1:]:
        if (said := url_shown(str(step).partition("\n")[0])) not in "".join(lines):
            lines.append(f"caused by {type(step).__name__}: {said}\n")
    return [*heading, *traceback.format_list(theirs), *lines]


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the user's first frame on; all of it when there is none, as for a syntax error."""
    step = frames
    while step is not None and step.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
        step = step.tb_next
    return step


def _candidates(module: ModuleType, wanted: str) -> str:
    """What the user may have meant."""
    names = [
        name
        for name, value in attributes_of(module).items()
        if isinstance(value, StreamEnvironment)
        or (inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"))
    ]
    return f"; it has {those_there_are(wanted, names)}" if names else ""


def _described(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name} ({value!r:.60})"
