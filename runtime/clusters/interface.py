"""interface: what a program imports that builds jobs and starts a cluster on its machine."""

from __future__ import annotations


def load() -> None:
    """Import it."""
    from ..api import environment  # noqa: F401
    from . import local_cluster  # noqa: F401
