"""What to do about errors whose own text does not say it. Decided where the exception still exists."""

from __future__ import annotations

import errno
import linecache
import re
import sys
from bdb import BdbQuit

from ..messages import Row
from .names_of_others import meant_here

_PLAIN = (int, float, str, bool, list, tuple, type(None))
_OF_STATES = frozenset({"value", "update", "add", "add_all", "get", "put", "clear"})
_AS_DICT = frozenset({"asDict", "as_dict", "to_dict", "_asdict"})
"""As rows of Spark and series of pandas call it."""
_ACCESSOR = re.compile(r"'(Heap|Slot)\w+'")
"""How accessors of state are called in Python's own errors."""
_CALLED_VALUE = re.compile(r"self\s*\.\s*(key|timestamp|context|timers)\s*\(.*")
"""What is read as `self.key`, where it is called."""
_OF_NONE = re.compile("unsupported operand|not supported between|not subscriptable|not iterable")
"""What Python says of None where a number, a dict or a list was meant."""
_OF_EVENT_LOOPS = {
    "asyncio.run() cannot be called": "write `await ...` in place of `asyncio.run(...)`: the event loop runs already",
    "event loop is already running": "write `await ...` in place of `run_until_complete(...)`",
    "no running event loop": "make clients and tasks of asyncio in `async def open(self)`, where the event loop runs",
    "attached to a different loop": "what belongs to an event loop is made in `async def open(self)`, where it runs",
}
"""By what Python says about them."""
_OF_SPARK = {
    "SESSION_OR_CONTEXT_NOT_EXISTS": (
        "a function of pyspark.sql makes columns of a DataFrame, in the program that has the session: a stream takes "
        "functions of Python, of a record; use the other ones before from_dataframe"
    )
}
_OF_PAIRS = (
    "a tuple has no names: record[0] is its first item; what a join of records gives is the pair (left, right): write "
    'left, right = pair; left["price"]'
)
_OF_AWAIT = "out.collect, self.timers.at_event_time and methods of state are called without await"
_OF_TYPES = {
    "'method' and '": "brackets are missing behind a method, as in self.total.value()",
    "' and 'method'": "brackets are missing behind a method, as in self.total.value()",
    "tuple indices must be integers or slices, not str": _OF_PAIRS,
    "list.append() takes exactly one argument": (
        "out.collect(...) takes one record, as a list's append: write out.collect((key, record)) for several values"
    ),
    "Collector.put() missing 1": "write out.collect(record) in place of out.put(record)",
    "Collector' object is not callable": "write out.collect(record) in place of out(record)",
    "'KeyedTimer'": "the time of a timer is timer.time_ms, in milliseconds",
    "'async for' requires an object with __aiter__": (
        "a function of flat_map, and process, get one record at a time: `async for` goes through a stream elsewhere"
    ),
    "NoneType can't be used in 'await' expression": _OF_AWAIT,
    "'NoneType' object can't be awaited": _OF_AWAIT,
}


HOLD_LESS = (
    'give it more memory, or hold less: fewer slots or less state in each TaskManager (state_backend="rocksdb" keeps '
    "state on disk), or smaller batches"
)
NO_MORE_MEMORY = f"this TaskManager gets no more memory (see `ulimit -v`, and the limit of its container): {HOLD_LESS}"
NO_MORE_THREADS = (
    "this user may have no more threads, or the machine no more memory: raise the limit (ulimit -u, pids.max of a "
    "container) where TaskManagers start, or use fewer TaskManagers"
)
NO_MORE_OF_EITHER = (
    "it got no more memory, or no more threads: see `ulimit -v`, `ulimit -u` and the limits of its container"
)
"""Of a process that does not say which."""
_OF_PROCESSES = {
    "MemoryError": NO_MORE_MEMORY,
    "bad_alloc": NO_MORE_MEMORY,
    "Cannot allocate memory": NO_MORE_MEMORY,
    "Resource temporarily unavailable": NO_MORE_OF_EITHER,
    "can't start new thread": NO_MORE_THREADS,
    "Too many open files": "raise the number of files that a process may open (`ulimit -n`)",
}
"""By what a process or the system says."""
_OF_THREADS = {"can't start new thread": NO_MORE_THREADS}
"""As of event loops, outside of them."""


def remedy_of_end(said: str) -> str:
    """A clause that follows what a process has said at its end; empty where there is nothing to add."""
    return next((f", so {remedy}" for sign, remedy in _OF_PROCESSES.items() if sign in said), "")


def remedy(error: BaseException) -> str:
    """A clause that follows the error's text; empty where there is nothing to add."""
    if isinstance(error, ModuleNotFoundError):
        return (
            f"install it where TaskManagers run (the Python here is {sys.executable}); a module of your own can be "
            "shipped: to a cluster on your own hosts by py_files= of submit, or `understudy submit --py-files PATH`, "
            "on Spark by spark.sparkContext.addPyFile(...)"
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (ulimit -n) where TaskManagers start, or give each fewer slots"
    if isinstance(error, MemoryError):
        return NO_MORE_MEMORY
    if isinstance(error, AttributeError) and "attribute 'value' is read-only" in str(error):
        return "write self.x.update(value) in place of self.x.value = value"
    if isinstance(error, AttributeError):
        return _of_attribute(error.obj, str(error.name))
    if isinstance(error, TypeError) and _ACCESSOR.search(str(error)):
        return "a state is read by value() or get() and changed by update() or add(), as in n.update(n.value() + 1)"
    if isinstance(error, TypeError) and "NoneType" in str(error) and _OF_NONE.search(str(error)):
        return (
            "a value here is None: so is that of a ValueState without default= for a new key (n = ValueState(int, "
            "default=0)), of a column without a value, and of a function without `return`"
        )
    if isinstance(error, TypeError) and "object is not callable" in str(error) and (name := _called_value(error)):
        return f"self.{name} is a value and no method: write self.{name} in place of self.{name}()"
    if isinstance(error, RuntimeError | TypeError):
        known = _OF_EVENT_LOOPS | _OF_THREADS | _OF_SPARK if isinstance(error, RuntimeError) else _OF_TYPES
        return next((told for text, told in known.items() if text in str(error)), "")
    if type(error).__name__ == "CancelledError":
        return (
            "what the coroutine awaited was cancelled, and not by its operator: whoever called cancel() meant it, or "
            "catch asyncio.CancelledError where it is awaited"
        )
    if isinstance(error, EOFError) and "reading a line" in str(error):  # of input()
        return "TaskManagers have no terminal: LocalCluster(debug=True) runs the job in your program"
    if isinstance(error, SystemExit):
        return (
            "sys.exit() fails the task, as any error does: to leave a record out, return before out.collect(...); "
            "job.stop() ends the job, where it was submitted"
        )
    if isinstance(error, BdbQuit):
        return "TaskManagers have no terminal for a debugger: LocalCluster(debug=True) runs the job in this process"
    return ""


def _called_value(error: TypeError) -> str:
    """Which attribute of an operator that is no method was called as one; empty if none was, or nobody can see it."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return ""
    code = place.tb_frame.f_code
    first, last, start, end = list(code.co_positions())[place.tb_lasti // 2]
    if first is None or first != last:
        return ""
    line = linecache.getline(code.co_filename, first, place.tb_frame.f_globals).encode()
    called = _CALLED_VALUE.fullmatch(line[start:end].decode(errors="replace"))
    return called[1] if called else ""


def _of_attribute(owner: object, name: str) -> str:
    """The same, where the owner has no attribute of this name."""
    if isinstance(owner, Row) and name in _AS_DICT:
        return f"write row.asdict() in place of row.{name}()"
    if isinstance(owner, dict) and name in owner:
        return f"it is an item of this dict: write record[{name!r}]"
    if type(owner) is tuple and name not in _OF_STATES:
        return _OF_PAIRS
    if owner is None and name in ("update", "add"):
        return (
            "a value here is None: is a `return` missing in the function that made it, or was self.x = value written "
            "for a state, in place of self.x.update(value)?"
        )
    if type(owner) in _PLAIN and name in _OF_STATES:
        return "is it a state that was assigned to? write self.x.update(value) in place of self.x = value"
    return meant_here(owner, name)
