"""Annotations of a class itself, or of a function, on each Python: from 3.14 on they are worked out when somebody asks
for them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any


def own_annotations(of: type | FunctionType) -> Mapping[str, Any]:
    """Those that stand in it itself, in their order. A name that cannot be resolved is no error: its text, or a
    `ForwardRef`, stands for it.
    """
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(of, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(of).get("__annotations__", {})
    return found
