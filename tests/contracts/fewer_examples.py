"""A contract with fewer examples: for an implementation each of whose examples is slow, where CI runs the rest now and
then (`slow`).
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings


def with_fewer_examples(contract: type, count: int) -> dict[str, Any]:
    """Its properties, to be made attributes of a subclass: the same tests with this many examples each."""
    few = settings(
        max_examples=count, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors], deadline=None
    )
    found = {}
    for name, test in vars(contract).items():
        handle = getattr(test, "hypothesis", None)
        if handle is not None:
            again = few(given(**handle._given_kwargs)(handle.inner_test))
            for mark in getattr(test, "pytestmark", ()):
                again.pytestmark = [*getattr(again, "pytestmark", ()), mark]  # type: ignore[attr-defined]
            found[name] = again
    return found
