"""known_options: a method with options of every operator says which it takes, where a call does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypedDict, TypeVar

from ...actors.async_calls.settings import SETTINGS_ELSEWHERE, AsyncSettings
from ...messages.known_names import known_arguments, meant
from ...state.kinds.durations import Units
from .advice import UNTYPED

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """What every operator can be given."""

    name: str | None
    parallelism: int | None
    slot_sharing_group: str | None


class OptionsAndUnits(Options, Units, total=False):
    """Also the parts of a duration."""


_ACCEPTED = ("schema",)
"""Taken by every operator, and meant for few."""
_UNTYPED = dict.fromkeys(("output_type", "result_type", "type_info", "key_type", "value_type"), UNTYPED)
"""Of PyFlink and Faust."""
_OF_COROUTINES = {each.name: f"write .async_settings({each.name}=...) behind it" for each in fields(AsyncSettings)} | {
    name: f"write .async_settings({instead}=...) behind it" for name, instead in SETTINGS_ELSEWHERE.items()
}


def known_options(
    options: type = Options, *, called: str = "", example: str = "", elsewhere: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Decorates a method with `**options: Unpack[options]`. `elsewhere`: as of known_arguments."""
    return known_arguments(
        called,
        first=1,
        also=options.__annotations__,
        accepted=_ACCEPTED,
        elsewhere=_OF_COROUTINES | _UNTYPED | dict(elsewhere or {}),
        example=example,
    )


def check_results(called: str, results: Mapping[str, Any], options: Sequence[str], wanted: type) -> None:
    """Of a method that takes results by names of the user's: one that is none, and whose name is like an option's, is
    the option. Raises TypeError.
    """
    for name, given in results.items():
        if not isinstance(given, wanted) and (near := meant(name, options)):
            raise TypeError(f"{called} has no argument {name!r}{near} {given!r:.60} is no aggregate either")
