"""What can go wrong with a compiled operator.

ActorError
├── CannotCompile    `process` is not a function that can be compiled for this input; names the line and what to change
└── NumbaMissing     `compiled = True` without Numba
"""

from __future__ import annotations

from ..errors import ActorError


class CannotCompile(ActorError, ValueError):
    """`process` does what a compiled function cannot. The cause, if any, is what Numba said."""


class NumbaMissing(ActorError, ValueError):
    """Numba is an optional dependency."""

    def __init__(self, operator: str) -> None:
        super().__init__(f"{operator}: compiled = True needs Numba: pip install 'understudy[compiled]'")


class NullRead(ActorError, ValueError):
    """`process` has read a number that is null: a compiled function has no None."""
