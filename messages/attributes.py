"""What a class, a module or an object holds, however many threads there are."""

from __future__ import annotations

from typing import Any


def attributes_of(owner: object) -> dict[str, Any]:
    """Its own, in their order, as they are at this moment: those of its bases are not among them.

    A copy that is made in one step. A loop over `vars(owner)` itself raises where another thread sets a further
    attribute in the middle of it, as an import, a cached property or `pickle` does.
    """
    return vars(owner).copy()
