"""What an operator's method has raised because something is not there, in words that say what to write.

An operator has the attributes `key`, `timers` and `timestamp` only where there is one, so elsewhere `self.key` is
Python's own AttributeError: asking before each read whether there is one would cost every record something.
"""

from __future__ import annotations

from ...state.errors import NoCurrentKey
from ...state.kinds.misnamed import Misnamed, no_method
from ..errors import NoEventTime
from .keyed_operator import KeyedOperator
from .operator import Operator
from .source import Source


def missing_here(error: BaseException, operator: Operator, hook: str = "") -> BaseException:
    """The error itself; it gets the method in which it happened, if it is a NoCurrentKey. With its traceback, in place
    of the AttributeError of `self.key` a NoCurrentKey, of `self.timestamp` a NoEventTime, and of a method that a state
    has not the one that says which there are.
    """
    if isinstance(error, NoCurrentKey):
        error.hook = error.hook or hook
    elif not isinstance(error, AttributeError):
        return error
    elif isinstance(error.obj, Misnamed):
        return no_method(error.obj, str(error.name)).with_traceback(error.__traceback__)
    elif error.obj is operator and not isinstance(operator, Source):
        return _not_set(str(error.name), operator, hook, error).with_traceback(error.__traceback__)
    return error


def _not_set(name: str, operator: Operator, hook: str, error: AttributeError) -> BaseException:
    """What says why the operator has no such attribute now. The error itself for an attribute of the user's, and for
    `self.timestamp` where a whole batch has times: Python says that there is `timestamps`.
    """
    if isinstance(operator, KeyedOperator):
        if name == "key":
            return NoCurrentKey("self.key", operator.context.name, hook)
        if name == "timestamp":
            index = operator._input_index if operator.inputs == 2 and operator.timestamps is None else None
            return NoEventTime(operator.context.name, "self.timestamp", index)
    elif name in ("key", "timers"):
        return NoCurrentKey(f"self.{name}", operator.context.name, hook, has_keys=False)
    elif name == "timestamp" and operator.timestamps is None:
        return NoEventTime(operator.context.name, "self.timestamp")
    return error
