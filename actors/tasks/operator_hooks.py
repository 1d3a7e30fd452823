"""Calls of an operator's methods: what goes wrong names the operator; of what a method returns, some is refused."""

from __future__ import annotations

from typing import Any

from ...messages import CheckpointId, UnsupportedValue
from ..errors import RecordNotSent, SuperNotCalled, UserCodeError
from ..operators.missing_here import missing_here
from ..operators.operator import Operator
from ..unrun import has_run, refuse

_EMITTING = ("on_end", "before_barrier")
"""Hooks that emit to a collector, and so return nothing."""


class blame:
    """Names the operator in whatever it raises, be it SystemExit, and the position of its record if that is known.

    `emitter`: whose records it takes; named instead if it was given one that cannot be written.
    """

    __slots__ = ("_emitter", "_operator", "_position")

    def __init__(self, operator: Operator, position: int | None = None, *, emitter: Operator | None = None) -> None:
        self._operator = operator
        self._position = position
        self._emitter = emitter

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> None:
        if isinstance(error, UserCodeError):
            if error.__cause__ is not None:
                error.__cause__ = missing_here(error.__cause__, self._operator, error.hook)
        elif error is not None:
            if self._emitter is not None and isinstance(error, UnsupportedValue):
                raise RecordNotSent(self._emitter.context.name, error) from error
            cause = missing_here(error, self._operator)
            raise UserCodeError(self._operator.context.name, self._position) from cause


class hook(blame):
    """The same around a method that is called without a key; there is none afterwards either, whatever it did."""

    __slots__ = ("_name",)

    def __init__(self, operator: Operator, name: str) -> None:
        super().__init__(operator)
        self._name = name

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._operator._leave_key()
        if error is not None:
            error = missing_here(error, self._operator, self._name)
        super().__exit__(kind, error, traceback)


def call(operator: Operator, name: str, *args: Any) -> Any:
    """Call one of the operator's hooks. Its result is refused if nothing of the hook has run, or if it was to emit
    that.
    """
    with hook(operator, name):
        result = getattr(operator, name)(*args)
        if result is None:
            return None
        what = f"{type(operator).__name__}.{name}"
        return refuse(what, result) if name in _EMITTING else has_run(what, result)


def call_ours_too(operator: Operator, name: str, checkpoint_id: CheckpointId) -> None:
    """Call a hook in which a base class of ours may have to do its part."""
    call(operator, name, checkpoint_id)
    if lost := operator._lost_without_super(name, checkpoint_id):
        with hook(operator, name):
            raise SuperNotCalled(type(operator).__name__, f"{name}(checkpoint_id)", lost)
