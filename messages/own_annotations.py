"""A class's own annotations, on each Python: from 3.14 on they are worked out when somebody asks for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def own_annotations(cls: type) -> Mapping[str, Any]:
    """Those that stand in the class itself, in their order. A name that cannot be resolved is no error: its text, or a
    `ForwardRef`, stands for it.
    """
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return found
