"""The settings of coroutines, as a stream's methods take and check them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import FunctionType
from typing import Any, Final

from ...actors.async_calls.settings import AsyncSettings
from ...actors.operators.operator import Operator
from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.whose_code import is_ours
from ...state.kinds.state_declaration import StateDeclaration
from .errors import InvalidOperator, InvalidSetting

_NAME: Final = "async_settings"


def settings_of(operator: Operator) -> AsyncSettings:
    """Those of its class, or of this use. Raises InvalidOperator for something else in their place."""
    given = operator.async_settings
    if given is None:
        return AsyncSettings()
    if not isinstance(given, AsyncSettings):
        raise InvalidOperator(
            f"{type(operator).__name__}.async_settings: wanted an AsyncSettings, as in "
            f"`async_settings = AsyncSettings(max_in_flight=100)`, found {given!r:.60}"
        )
    return given


def check_settings(operator: Operator) -> None:
    """Raises InvalidOperator for settings that nothing would read: of another name, or without coroutines."""
    kind = type(operator)
    own: dict[str, Any] = {}
    for cls in reversed(kind.__mro__[: kind.__mro__.index(Operator)]):
        own |= attributes_of(cls)
    for name, value in (own | attributes_of(operator)).items():
        is_lost = operator.async_settings is None and isinstance(value, AsyncSettings)
        if name != _NAME and not name.startswith("_") and (is_lost or _is_misspelt(name, value)):
            raise InvalidOperator(
                f"{kind.__name__}.{name}: nothing reads it: the settings of coroutines are called {_NAME}, as in "
                f"`{_NAME} = AsyncSettings(max_in_flight=100)`"
            )
    if operator._is_async:
        settings_of(operator)
        _check_not_attributes(operator)
    elif operator.async_settings is not None:
        raise InvalidOperator(
            f"{kind.__name__}.{_NAME}: nothing reads it, as {kind.__name__} runs no coroutines: write "
            f"`async def process`, or leave {_NAME} out"
        )


def _check_not_attributes(operator: Operator) -> None:
    """Raises InvalidOperator for a setting that stands in the class by itself, unless the class reads it."""
    kind = type(operator)
    classes = kind.__mro__[: kind.__mro__.index(Operator)]
    own = [each for each in classes if not is_ours(each)]
    functions = [each for cls in own for each in attributes_of(cls).values() if isinstance(each, FunctionType)]
    read = {name for function in functions for code in codes_of(function.__code__) for name in code.co_names}
    names = {each.name for each in fields(AsyncSettings)} - read
    lost = {
        name: value
        for cls in reversed(own)
        for name, value in attributes_of(cls).items()
        if name in names and _is_setting(name, value)
    }
    if lost:
        given = ", ".join(f"{name}={value!r:.60}" for name, value in lost.items())
        better = f"write `{_NAME} = AsyncSettings({given})`"
        if operator.async_settings is not None:
            better = f"add {given} to `{_NAME}`"
        raise InvalidOperator(f"{kind.__name__}.{', '.join(lost)}: nothing reads it there: {better}")


def _is_setting(name: str, value: object) -> bool:
    if isinstance(value, FunctionType | property | StateDeclaration):
        return False
    try:
        AsyncSettings(**{name: value})  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _is_misspelt(name: str, value: object) -> bool:
    return not callable(value) and bool(get_close_matches(name, [_NAME], 1, cutoff=0.85))


def settings_with(operator: Operator, name: str, changes: Mapping[str, Any]) -> AsyncSettings:
    """Raises InvalidOperator where there are no coroutines, and InvalidSetting."""
    if not operator._is_async:
        raise InvalidOperator(
            f"async_settings: operator {name!r} runs no coroutines: its `process`, or its function, is no `async def`"
        )
    settings = settings_of(operator)
    try:
        return settings.with_changes(**changes)
    except ValueError as error:
        raise InvalidSetting(str(error)) from None


def check_has_errors(operator: Operator, name: str) -> None:
    """Raises InvalidOperator for one that puts nothing there."""
    if not operator._is_async:
        raise InvalidOperator(f"errors: operator {name!r} runs no coroutines; only those have a stream of errors")
    if settings_of(operator).on_error != "errors":
        raise InvalidOperator(
            f"errors: operator {name!r} fails with its first error, so nothing would come here: set it before, as in "
            'stream.map(fetch).async_settings(on_error="errors")'
        )
