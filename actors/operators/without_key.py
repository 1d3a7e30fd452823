"""What an operator's method has raised because no key is set where it runs, as a NoCurrentKey that says so.

An operator has the attribute `key` only while a key is set, so `self.key` elsewhere is Python's own AttributeError:
asking before each read whether there is one would cost every record something.
"""

from __future__ import annotations

from ...state.errors import NoCurrentKey
from .keyed_operator import KeyedOperator
from .operator import Operator


def without_key(error: BaseException, operator: Operator, hook: str = "") -> BaseException:
    """The error itself; it gets the method in which it happened, if it is a NoCurrentKey; and a NoCurrentKey in place
    of the AttributeError of `self.key`, with its traceback.
    """
    if isinstance(error, NoCurrentKey):
        error.hook = error.hook or hook
    elif isinstance(operator, KeyedOperator) and _is_about_key(error, operator):
        return NoCurrentKey("self.key", operator.context.name, hook).with_traceback(error.__traceback__)
    return error


def _is_about_key(error: BaseException, operator: KeyedOperator) -> bool:
    return isinstance(error, AttributeError) and error.name == "key" and error.obj is operator
