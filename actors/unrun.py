"""Unrun code: a coroutine or a generator in the place of a value. Nothing of it has run, and nothing ever would.

The API refuses such code when the stream is built, if it shows there (runtime/api/operator_checks.py). The rest is
caught here, where user code returns or emits: `lambda record: fetch(record)` looks like any other function. Checks
cost next to nothing as long as nothing is wrong. A refused object is closed, so that Python does not warn of it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dis import get_instructions
from types import AsyncGeneratorType, GeneratorType
from typing import Any, NoReturn, TypeVar

from ..messages import DictRow
from ..messages.whose_code import is_ours
from .errors import UnwantedResult

T = TypeVar("T")

NOT_ASYNC = "write a plain function here; what waits goes into `async def process`, or an `async def` function of map"
AWAIT = "which nothing awaits here: await it in `async def process`, or in an `async def` function of map"
COLLECT = "write out.collect(x) in place of `yield x`"
RETURN = "return the value in place of `yield`"
NO_YIELD = "take the `yield` out: it is called for what it does"

_SAMPLED = 16
"""One result in this many of a function is looked at, and always the first."""


class _UnrunKinds(dict[type, bool]):
    """By type: whether its objects are code that has not run. Filled as types come by."""

    def __missing__(self, kind: type) -> bool:
        is_unrun = hasattr(kind, "__await__") or issubclass(kind, GeneratorType | AsyncGeneratorType)
        self[kind] = is_unrun
        return is_unrun


UNRUN = _UnrunKinds()


def has_run(what: str, result: T, in_place_of_yield: str = NO_YIELD) -> T:
    """The result of a call, `what`, as it is. Raises UnwantedResult when nothing of that call has run."""
    if result is not None and UNRUN[type(result)]:
        refuse(what, result, in_place_of_yield)
    return result


def result_of(owner: Any, method: str, *args: Any, in_place_of_yield: str = NO_YIELD) -> Any:
    """What this method of the user's class returns. Raises UnwantedResult when nothing of it has run."""
    return has_run(f"{type(owner).__name__}.{method}", getattr(owner, method)(*args), in_place_of_yield)


def refuse(what: str, result: Any, in_place_of_yield: str = COLLECT, index: int | None = None) -> NoReturn:
    """Raises UnwantedResult, saying what to write instead. `index`: whose of the records of a batch it is."""
    kind, told = type(result), _told(result)
    _close(result)
    if isinstance(result, GeneratorType):
        raise UnwantedResult(f"{what} returned {told}, none of whose code has run: {in_place_of_yield}", index)
    if UNRUN[kind]:
        raise UnwantedResult(f"{what} returned {told}, {AWAIT}", index)
    raise UnwantedResult(
        f"{what} returned {_shown(result)}, which would be lost: wanted None; what goes to the next operator is given "
        "to out.collect(x)",
        index,
    )


def check_records(what: str, results: Sequence[Any], in_place_of_yield: str = RETURN, *, one_each: bool = True) -> None:
    """Look at a sample of what a function has made of the records of one batch; raises UnwantedResult. `one_each`: the
    error says which record it is.

    A sample, as a look at each costs as much as a short function. One that slips through is no record that could be
    sent to another task or stored, so it is found there.
    """
    if len(results) <= _SAMPLED:
        is_unrun = bool(results) and UNRUN[type(results[0])]
    else:
        is_unrun = any([UNRUN[kind] for kind in set(map(type, results[::_SAMPLED]))])  # noqa: C419 (faster)
    if is_unrun:
        refuse_first(what, results, in_place_of_yield, one_each=one_each)


def check_emitted(operator: Any, records: Sequence[Any], *, each: bool) -> None:
    """Look at what an operator has emitted: at `each` record, or at the first one. Raises UnwantedResult for a
    coroutine, as nobody awaits it any more.
    """
    if not (any([UNRUN[kind] for kind in set(map(type, records))]) if each else UNRUN[type(records[0])]):  # noqa: C419
        return
    index, result = next((at, record) for at, record in enumerate(records) if UNRUN[type(record)])
    for other in records[index + 1 :]:
        _close(other)
    told = _told(result)
    _close(result)
    wanted = "collect its items" if isinstance(result, GeneratorType) else "write `await` before it"
    raise UnwantedResult(
        f"{type(operator).__name__} emitted {told}, and nobody runs it: {wanted}{_collecting(operator)}"
    )


def _collecting(operator: Any) -> str:
    """Where the operator collects records, as far as its code shows it."""
    lines: list[str] = []
    for name in ("process", "process_2", "process_batch", "on_timer"):
        method = getattr(type(operator), name, None)
        code = getattr(method, "__code__", None)
        if method is not None and code is not None and not is_ours(method):
            numbers = {at.positions.lineno for at in get_instructions(code) if at.argval == "collect" and at.positions}
            lines += [f"{code.co_filename}:{number}" for number in sorted(filter(None, numbers))]
    return f", at {' or '.join(lines)}" if lines else ""


ONE_RECORD = frozenset({dict, DictRow, str, bytes})
"""They are iterable, and whoever returns one for many records means it as a record."""


def refuse_single(what: str, result: Any) -> NoReturn:
    """Raises UnwantedResult for what came in place of an iterable of records."""
    raise UnwantedResult(
        f"{what} returned {_shown(result)}: wanted an iterable of records: return a list of them, [] for none, or "
        "`yield` each; for one record each use map",
        None,
    ) from None


def refuse_batch(what: str, result: Any) -> NoReturn:
    """The same for one record in place of a batch."""
    raise UnwantedResult(
        f"{what} returned {_shown(result)}: wanted a list of records or a pa.RecordBatch, None when there is nothing "
        "yet, or END: for one record return [record]",
        None,
    )


def refuse_none(what: str, wanted: str) -> NoReturn:
    """Raises UnwantedResult for None in place of a value."""
    raise UnwantedResult(f"{what} returned None: wanted {wanted}: is a `return` missing?", None)


def refuse_first(
    what: str, results: Sequence[Any], in_place_of_yield: str = RETURN, *, one_each: bool = True
) -> NoReturn:
    """The same for the first of the results that has not run; the others are closed, too."""
    unrun = [index for index, result in enumerate(results) if UNRUN[type(result)]]
    for index in unrun[1:]:
        _close(results[index])
    refuse(what, results[unrun[0]], in_place_of_yield, unrun[0] if one_each else None)


_KINDS = {"coroutine": "a coroutine", "generator": "a generator", "async_generator": "an async generator"}


def _told(result: Any) -> str:
    """As in "a coroutine (fetch)"."""
    kind, name = type(result), getattr(result, "__qualname__", "")
    return f"{_KINDS.get(kind.__name__, f'an awaitable {kind.__qualname__}')}{f' ({name})' if name else ''}"


def _close(result: Any) -> None:
    """An async generator that was never begun needs no closing."""
    if UNRUN[type(result)] and not isinstance(result, AsyncGeneratorType) and callable(getattr(result, "close", None)):
        result.close()


def _shown(result: Any) -> str:
    kind = type(result).__name__
    try:
        return f"{result!r:.80} ({kind})"
    except Exception:  # noqa: BLE001 - the user's own __repr__
        return f"a {kind}"
