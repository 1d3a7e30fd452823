"""What the commands say: what scripts read on standard output, everything else on standard error; and how they fail."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ParamSpec, TextIO, TypeVar

import click

from ...actors.checkpoints.reason_words import in_words
from ...actors.errors import ActorError
from ...messages import JobDetails, Row
from ...messages.errors import MessageError
from ...state.errors import StateError
from ..api.errors import ApiError
from ..clusters.remote_errors import RemoteError
from ..connectors import ConnectorError
from ..high_availability import HighAvailabilityError
from ..hosts.errors import HostError
from ..system.errors import ActorSystemError

P = ParamSpec("P")
R = TypeVar("R")

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""

OURS = (
    ActorError,
    ActorSystemError,
    ApiError,
    ConnectorError,
    HighAvailabilityError,
    HostError,
    MessageError,
    RemoteError,
    StateError,
)
"""Errors whose text is shown as it is."""


FLAGS = {"allow_non_restored_state": "-n, --allow-non-restored-state"}
"""Arguments of the API that errors name, and what they are on the command line."""


def by_flag(text: str) -> str:
    """An error's text with the flags in place of the API's arguments, and words in place of the API's codes."""
    for argument, flag in FLAGS.items():
        text = text.replace(argument, flag)
    return in_words(text)


def told(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose failures are reported in words and by exit code: ours by 1, Ctrl-C by 130. Warnings about a
    program, of which no line is known, are lines of ours.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_in_words():
                return command(*args, **kwargs)
        except OURS as error:
            raise click.ClickException(by_flag(str(error)) or type(error).__name__) from error
        except KeyboardInterrupt:
            note("interrupted; what was asked for goes on")
            raise SystemExit(INTERRUPTED) from None

    return run


@contextlib.contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Those of this library that come of no line of the user's point at click, which has called the command."""
    before, caller = warnings.showwarning, str(Path(click.__file__).parent)

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(caller) and issubclass(category, UserWarning):
            note(f"warning: {by_flag(str(message))}")
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def note(text: str) -> None:
    """To standard error; scripts do not read it, and nobody may, as where it was a pipe that is closed by now."""
    with contextlib.suppress(BrokenPipeError):
        click.echo(text, err=True)


def log_is_shown(name: str) -> bool:
    """Whether warnings of this logger come to standard error, where whoever reads this command reads them."""
    logger: logging.Logger | None = logging.getLogger(name)
    if logger is None or not logger.isEnabledFor(logging.WARNING):
        return False
    handlers: list[logging.Handler] = []
    while logger is not None:
        handlers += logger.handlers
        logger = logger.parent if logger.propagate else None
    if not handlers:
        return logging.lastResort is not None
    streams = [each.stream for each in handlers if isinstance(each, logging.StreamHandler)]
    return sys.stderr in streams or sys.__stderr__ in streams


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    click.echo(as_json_text(value))


def as_json_text(value: Any) -> str:
    return json.dumps(plain(value), indent=2)  # in ASCII: every text can be written, whatever the terminal's encoding


def plain(value: Any) -> Any:
    """The value as JSON has it: messages, dataclasses and rows become objects, an enum its value, what JSON does not
    know its text.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return plain(value.value)
        case Row():
            return {name: plain(item) for name, item in zip(value._columns, value, strict=True)}
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return str(value)


def with_option(text: str, ended: JobDetails) -> str:
    """How a job has ended, as the API says it: with the option in place of the argument `from_savepoint`."""
    path = ended.retained_checkpoint_path
    return text.replace(f"from_savepoint={path!r}", f"--from-savepoint {path}") if path else text
