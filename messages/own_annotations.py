"""Annotations of a class itself, or of a function, on each Python: from 3.14 on they are worked out when somebody asks
for them, and then name what only a type checker has imported.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from .attributes import attributes_of


def own_annotations(of: type | FunctionType) -> Mapping[str, Any]:
    """Those that stand in it itself, in their order. A name that cannot be resolved is no error: its text, or a
    `ForwardRef`, stands for it.
    """
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(of, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(of).get("__annotations__", {})
    return found


def resolved_annotations(cls: type) -> dict[str, Any]:
    """The same of a class, where a text means what its module has under that name. One that has no meaning stays."""
    return {name: _resolved(cls, name, hint) for name, hint in own_annotations(cls).items()}


def _resolved(cls: type, name: str, hint: Any) -> Any:
    if isinstance(hint, type):
        return hint
    alone = type(cls.__name__, (), {"__annotations__": {name: hint}})
    module = sys.modules.get(cls.__module__)
    names = {} if module is None else vars(module)
    try:  # a name of the module comes before a field that is called like it
        return typing.get_type_hints(alone, attributes_of(cls), names, include_extras=True)[name]
    except Exception:  # noqa: BLE001 - an annotation is an expression of the user's, perhaps for type checkers only
        return hint


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """As inspect's, which from 3.14 on raises for annotations that name what is not there: such a name is a text."""
    if sys.version_info >= (3, 14):
        import annotationlib

        found = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        parameters = [each.replace(annotation=_text_of(each.annotation)) for each in found.parameters.values()]
        return found.replace(parameters=parameters, return_annotation=_text_of(found.return_annotation))
    return inspect.signature(function)


def _text_of(annotation: Any) -> Any:
    return annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else annotation
