"""Names of what connectors read and write, as users give them: tables, topics, keys. An unset variable is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def one_name(setting: str, given: Any, wanted: str) -> str:
    """Raises ValueError for what is no text, or empty."""
    if not isinstance(given, str) or not given:
        raise ValueError(f"{setting}: wanted {wanted}, found {given!r:.80}")
    return given


def several_names(setting: str, given: Any, wanted: str) -> tuple[str, ...]:
    """One name, or several, each once. Raises ValueError for anything else, and for none."""
    names = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{setting}: wanted {wanted}, or several, found {given!r:.80}")
    return tuple(dict.fromkeys(names))
