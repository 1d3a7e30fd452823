"""Descriptors: how many of them this process can spare for connections of clients that have shown nothing yet."""

from __future__ import annotations

import resource

_SHARE = 4
_FEWEST = 8


def descriptors_of_process() -> int | None:
    """How many files and sockets it may open at once; None for any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def spare_descriptors(most: int) -> int:
    """A quarter of them, and `most` at most: the others are for files, checkpoints and peers."""
    descriptors = descriptors_of_process()
    return most if descriptors is None else max(_FEWEST, min(most, descriptors // _SHARE))
