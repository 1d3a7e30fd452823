"""What we use of aiozmq, on each Python that we run on.

aiozmq 1.0.0, its last release, imports names of asyncio that only its own event loop policy needs, and that Python
3.14 has removed or will remove. They are there while it is imported, and at no other time.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import contextlib
import warnings
from collections.abc import Iterator
from types import ModuleType

_GONE: tuple[tuple[ModuleType, str], ...] = (
    (asyncio.unix_events, "SafeChildWatcher"),  # until 3.13
    (asyncio, "AbstractEventLoopPolicy"),  # deprecated since 3.14, until 3.15
)


@contextlib.contextmanager
def _present(names: tuple[tuple[ModuleType, str], ...]) -> Iterator[None]:
    """Have a class under each of these names, an empty one where there is none, without the warning that it is old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        added = [(module, name) for module, name in names if not hasattr(module, name)]
        for module, name in added:
            setattr(module, name, type(name, (), {}))
        try:
            yield
        finally:
            for module, name in added:
                delattr(module, name)


with _present(_GONE):
    from aiozmq import ZmqProtocol, ZmqTransport, create_zmq_connection

__all__ = ["ZmqProtocol", "ZmqTransport", "create_zmq_connection"]
