"""Is this an operator, and is it complete?

Checked when it is put into a stream, so that the user's own line is in the traceback.
"""

from __future__ import annotations

import inspect
import logging
from difflib import get_close_matches
from inspect import iscoroutinefunction
from os import PathLike
from typing import Any, TypeVar, get_origin

from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ...actors.unrun import COLLECT
from ...actors.windows.window_function import ProcessWindowFunction
from ...messages.attributes import attributes_of
from ...messages.whose_code import is_ours
from ...state import refuse_keyed_state
from .async_settings import check_settings
from .broadcast_lists import check_lists_changed_by_key
from .errors import InvalidOperator
from .forgotten_lists import check_forgotten_lists
from .hook_checks import check_arguments, check_function, check_hooks, check_runs
from .missing_methods import check_methods_supplied
from .names_set_by_us import check_names_set_by_us
from .other_hooks import other_hooks, outdone_process
from .private_names import check_private_names
from .state_declarations import check_declarations
from .timer_methods import out_of_reach, sets_a_timer, timer_as_time
from .uncalled_methods import check_uncalled_methods
from .users_code import users_classes

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Operator)
M = TypeVar("M")

_HOOKS = ("on_", "before_", "process")
"""How the names begin of methods that the runtime calls."""


def operator_of(given: Any, *, inputs: int, keyed: bool, beside_broadcast: bool = False) -> Operator:
    """An Operator for a stream of `inputs` inputs, from an instance or from a class without arguments.

    `beside_broadcast`: the first input is keyed, and the second comes to every subtask.
    """
    kind = class_meant(given)
    kind = kind if isinstance(kind, type) else type(kind)
    if issubclass(kind, ProcessWindowFunction):
        raise InvalidOperator(
            f"wanted an Operator, found the ProcessWindowFunction {kind.__name__}: write "
            f"{'window' if keyed else 'window_all'}(tumbling(minutes=1)) before process({kind.__name__})"
        )
    for_state = "; state by key is kept by a KeyedOperator, with process(record, out)" if keyed else ""
    operator = _instance(given, Operator, f": for a plain function use map, flat_map or filter{for_state}")
    kind = type(operator).__name__
    if isinstance(operator, Source):
        raise InvalidOperator(f"{kind} is a source and takes no input: start a stream with from_source({kind}(...))")
    if isinstance(operator, KeyedOperator) and not keyed:
        raise InvalidOperator(f"{kind} is a KeyedOperator and needs a keyed stream: call key_by(...) before it")
    _check_input_count(operator, inputs)
    if beside_broadcast and operator._is_async:
        raise InvalidOperator(
            f"{kind} runs coroutines, which are ordered by key, and records of the broadcast stream have no key: write "
            "its methods without `async`, and put an operator behind it that awaits"
        )
    for index in range(inputs):
        _check_defines_process(operator, index)
    if not isinstance(operator, KeyedOperator):
        refuse_keyed_state(type(operator))
        _check_no_timers(operator)
    check_declarations(operator)
    check_private_names(type(operator))
    check_names_set_by_us(type(operator))
    check_forgotten_lists(type(operator))
    check_uncalled_methods(type(operator))
    check_lists_changed_by_key(type(operator))
    check_hooks(operator)
    check_methods_supplied(operator)
    if (
        isinstance(operator, KeyedOperator)
        and (refusal := operator._no_timers)
        and (place := sets_a_timer(type(operator)))
    ):
        raise InvalidOperator(f"{place}: {refusal}{out_of_reach(operator) or _misspelt(operator, 'on_timer')}")
    _warn_of_misspelt_hooks(operator)
    if (timer := timer_as_time(type(operator))) is not None:
        log.warning(
            "%s.on_timer uses %r as a time: it is a KeyedTimer, which equals no number, and whose time is %s.time_ms, "
            "in milliseconds",
            type(operator).__name__,
            timer,
            timer,
        )
    check_settings(operator)
    return operator


def sink_of(given: Any, *, keyed: bool) -> Operator:
    """The same for the end of a stream."""
    if given is print:
        raise InvalidOperator("sink_to: found the function print: write stream.print(), which prints each record")
    if isinstance(given, str | PathLike):
        raise InvalidOperator(f"sink_to: wanted a sink, found {given!r:.80}: write FileSink({str(given)!r:.80})")
    given = class_meant(given)
    if not isinstance(given, type | Operator):
        raise InvalidOperator(
            f"sink_to: wanted a sink such as FileSink('out'), found {_name_of(given)}: write an operator whose process "
            "does it (docs/connectors/your-own.md), or map(...) for a function that returns its record"
        )
    return operator_of(given, inputs=1, keyed=keyed)


def source_of(given: Any) -> Source:
    """A Source with its three methods, from an instance or from a class without arguments."""
    source = _instance(given, Source, "")
    check_methods_supplied(source)
    refuse_keyed_state(type(source))
    check_declarations(source)
    check_private_names(type(source))
    check_names_set_by_us(type(source))
    check_hooks(source)
    _warn_of_misspelt_hooks(source)
    return source


def class_meant(given: Any) -> Any:
    """The class of `Top[dict]`, which does the same; anything else as it is."""
    origin = get_origin(given)
    return origin if isinstance(origin, type) else given


def function_of(given: Any, method: str) -> Any:
    """A function for `method`, such as "map"; an operator given instead is pointed to `process`."""
    given = class_meant(given)
    if isinstance(given, Operator) or (isinstance(given, type) and issubclass(given, Operator)):
        raise InvalidOperator(f"{method}: wanted a function, found the operator {_name_of(given)}: use process(...)")
    if not callable(given):
        raise InvalidOperator(f"{method}: wanted a function, found {_name_of(given)} {given!r:.80}")
    check_function(method, given)
    return given


def instance_of(kind: type[M]) -> M:
    """Raises InvalidOperator for a class that needs arguments."""
    try:
        return kind()
    except TypeError as error:
        raise InvalidOperator(
            f"{kind.__name__} cannot be made without arguments ({error}): give an instance"
        ) from error


def _instance(given: Any, base: type[T], for_functions: str) -> T:
    given = class_meant(given)
    made = _instantiate(given, base) if isinstance(given, type) else given
    if not isinstance(made, base):
        hint = for_functions if inspect.isroutine(made) else ""
        raise InvalidOperator(f"wanted a subclass or an instance of {base.__name__}, found {_name_of(made)}{hint}")
    return made


def _instantiate(given: type, base: type[T]) -> T:
    if not issubclass(given, base):
        raise InvalidOperator(f"wanted a subclass of {base.__name__}, found the class {given.__name__}")
    missing = sorted(getattr(given, "__abstractmethods__", ()))
    if missing:
        raise InvalidOperator(f"{given.__name__} is abstract: it does not define {', '.join(missing)}")
    return instance_of(given)


def _check_input_count(operator: Operator, inputs: int) -> None:
    kind = type(operator).__name__
    if inputs == 2 and operator.inputs != 2:
        raise InvalidOperator(f"{kind} takes one input; for connected streams it declares `inputs = 2`")
    if inputs == 1 and operator.inputs == 2:
        raise InvalidOperator(f"{kind} takes two inputs: use first.connect(second).process({kind})")


def _check_defines_process(operator: Operator, index: int) -> None:
    kind, suffix = type(operator).__name__, "_2" if index else ""
    batch_method, record_method = f"process_batch{suffix}", f"process{suffix}"
    if isinstance(operator, KeyedOperator):
        if not _overrides(operator, KeyedOperator, batch_method) and not _overrides(
            operator, KeyedOperator, record_method
        ):
            hint = _misspelt(operator, record_method)
            raise InvalidOperator(f"{kind} does not define {record_method}(self, record, out){hint}")
    elif operator._is_async and iscoroutinefunction(getattr(operator, record_method, None)):
        return
    elif not _overrides(operator, Operator, batch_method):
        hint = _misspelt(operator, batch_method)
        if hasattr(operator, record_method):
            check_runs(f"{kind}.{record_method}", getattr(operator, record_method), COLLECT)
            if operator.inputs == 1:
                _check_takes_each(operator)
                return
            hint = f"; {record_method} of two inputs is called on a KeyedOperator, or where it is `async def`"
        raise InvalidOperator(f"{kind} does not define {batch_method}(self, batch, out){hint}")


def _check_takes_each(operator: Operator) -> None:
    """Of one without a key whose `process` takes one record at a time."""
    kind = type(operator).__name__
    check_arguments(operator, KeyedOperator, "process")
    if operator.takes != "records":
        raise InvalidOperator(
            f"{kind}.process takes one record at a time, and `takes = {operator.takes!r}` asks for whole batches: take "
            f"that out, or define process_batch(self, batch, out)"
        )
    if getattr(operator, "compiled", False):
        raise InvalidOperator(
            f"{kind}: `compiled = True` is for a KeyedOperator: make it one, behind key_by, or take that out"
        )


_OF_FLINK = {
    "": (
        *("process_element", "processElement", "process_element1", "processElement1", "async_invoke", "asyncInvoke"),
        *("map", "map1", "flat_map", "flatMap", "flat_map1", "flatMap1"),
    ),
    "_2": (
        *("process_element2", "processElement2", "process_broadcast_element", "processBroadcastElement"),
        *("map2", "flat_map2", "flatMap2"),
    ),
}
"""By input: the methods that take a record in Flink."""


def _check_no_timers(operator: Operator) -> None:
    """Timers belong to keys. Without one `on_timer` is never called, and there is no attribute `timers`."""
    kind = type(operator)
    place = sets_a_timer(kind)
    if place is not None or inspect.isfunction(getattr(kind, "on_timer", None)):
        found = f"{place}: {kind.__name__} sets a timer" if place else f"{kind.__name__} defines on_timer"
        raise InvalidOperator(
            f"{found}, and timers belong to a key: subclass KeyedOperator, and call key_by(...) before it. An operator "
            "without a key has on_idle(out)"
        )


def _misspelt(operator: Operator, method: str) -> str:
    """The end of a text about a method that is missing: one of the user's own that is called so in Flink, or whose
    name is much like it.
    """
    kind = type(operator)
    place = "_2" if method.endswith("_2") else ""
    for name in _OF_FLINK[place] if method.startswith("process") else ():
        if not inspect.isfunction(getattr(kind, name, None)):
            continue
        if inspect.iscoroutinefunction(getattr(kind, name)):
            return f"; it defines {name}: write `async def process{place}(self, record, out)` in its place"
        if method == "process_batch" and operator.inputs == 1:
            return f"; it defines {name}: rename it to process(record, out), and emit with out.collect(...)"
        if method.startswith("process_batch"):
            return (
                f"; it defines {name}: write {method} in its place, for a list of records: `for record in batch: ...`"
            )
        return f"; it defines {name}: rename it, and emit with out.collect(...)"
    own = [
        name for name in dir(kind) if not hasattr(KeyedOperator, name) and inspect.isfunction(getattr(kind, name, None))
    ]
    close = get_close_matches(method, own, 1)
    return f"; it defines {close[0]}: rename it" if close else ""


def _warn_of_misspelt_hooks(operator: Operator) -> None:
    """A method with such a name may be the user's own, so it is no error."""
    kind = type(operator)
    known = sorted(
        {name for each in filter(is_ours, kind.__mro__) for name in attributes_of(each) if name.startswith(_HOOKS)}
    )
    for each in users_classes(kind):
        for name, value in attributes_of(each).items():
            is_new = name.startswith(_HOOKS) and inspect.isfunction(value) and name not in known
            if is_new and (close := get_close_matches(name, known, 1, cutoff=0.85)):
                _warn_of_name(kind, name, close[0])
    if (outdone := outdone_process(kind)) is not None:
        _warn_of_name(kind, "process", f"process_batch(batch, out), which {outdone.__name__} defines,")
    for name, meant in other_hooks(kind):
        _warn_of_name(kind, name, meant)


def _warn_of_name(kind: type[Operator], name: str, meant: str) -> None:
    log.warning(
        "%s.%s is called by nothing here; is %s meant? If it is a method of your own, another name would not look like "
        "a hook",
        kind.__name__,
        name,
        meant,
    )


def _overrides(operator: Operator, base: type[Operator], method: str) -> bool:
    return getattr(type(operator), method, None) is not getattr(base, method)


def _name_of(given: Any) -> str:
    return given.__name__ if isinstance(given, type) else f"{_article(type(given).__name__)}"


def _article(name: str) -> str:
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
