"""The settings of coroutines, as a stream's methods take and check them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...actors.async_calls.settings import AsyncSettings
from ...actors.operators.operator import Operator
from .errors import InvalidOperator, InvalidSetting


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
