"""What is given to `submit`: an environment, or something that was taken for one."""

from __future__ import annotations

import inspect
from typing import Any

from .environment import StreamEnvironment
from .errors import InvalidProgram
from .stream import ConnectedStreams, DataStream, WindowedStream
from .stream_base import DataStreamSink


def check_environment(found: Any) -> None:
    """Raises InvalidProgram for what was submitted in its place."""
    if isinstance(found, StreamEnvironment):
        return
    if isinstance(found, str):
        told = f"{found!r} (str): the environment comes first, as in submit(env, name={found!r})"
    elif callable(found):
        called = getattr(found, "__name__", type(found).__name__)
        kind = "class" if isinstance(found, type) else "function"
        told = f"the {kind} {called}: call it, as in submit({called}())"
    elif isinstance(found, DataStream | DataStreamSink | ConnectedStreams | WindowedStream):
        told = f"a {type(found).__name__}: give the StreamEnvironment that it was built on"
    elif inspect.iscoroutine(found):
        found.close()
        told = "a coroutine: await what gives the environment, or make it with a plain def"
    elif found is None:
        told = "None: does the function that builds it end without `return env`?"
    else:
        told = f"{found!r:.80} ({type(found).__name__})"
    raise InvalidProgram(f"submit: wanted a StreamEnvironment, found {told}")
