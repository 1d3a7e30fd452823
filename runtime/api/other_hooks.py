"""Methods of an operator that bear the name of another library's hook, as of Flink or Beam, or are for a second input
that it has not, and that nothing calls.

All that such a method would have done is lost, and no error says so, as the last results of `def end(self, out)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType

from ...actors.actor import Actor
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.whose_code import is_ours

_END, _TAKEN = "on_end(out), at the end of the data", "on_checkpoint(checkpoint_id)"
_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("end", "onEnd", "end_input", "end_of_data", "on_finish", "finish_bundle", "on_complete"), _END),
    **dict.fromkeys(("on_open", "onOpen", "setup", "initialize_state", "on_start", "on_restart"), "open()"),
    **dict.fromkeys(("on_close", "onClose", "teardown", "on_stop", "on_failure", "dispose"), "close()"),
    "start_bundle": "open(), or the first line of process_batch(batch, out),",
    **dict.fromkeys(("snapshot_state", "snapshotState", "on_snapshot"), _TAKEN),
    "notify_checkpoint_complete": "on_checkpoint_complete(checkpoint_id)",
    "onWatermark": "on_watermark(timestamp_ms, out)",
    "process_watermark": "on_watermark(timestamp_ms, out)",
    "onReceive": "on_receive(message)",
}
_MEANT_BY_KEY: Mapping[str, str] = {
    "process_element": "process(record, out)",
    "processElement": "process(record, out)",
    "process_element1": "process(record, out)",
    "process_element2": "process_2(record, out)",
}
_MEANT_WITHOUT_KEY: Mapping[str, str] = dict.fromkeys(
    ("process_element", "processElement"), "process(record, out), in place of process_batch,"
)
OF_SECOND_INPUT = ("process_2", "process_batch_2")
_TWO_INPUTS = "`inputs = 2` in the class, with first.connect(second).process(...),"


def other_hooks(kind: type[Operator]) -> Iterator[tuple[str, str]]:
    """Each method that bears such a name, or takes records of a second input that there is not, and that no method of
    its class calls; and what is meant.
    """
    meant = {**_MEANT, **(_MEANT_BY_KEY if issubclass(kind, KeyedOperator) else _MEANT_WITHOUT_KEY)}
    ours = {name for base in kind.__mro__ if is_ours(base) and base is not Actor for name in attributes_of(base)}
    before_ours = [base for base in kind.__mro__ if not is_ours(base) and not issubclass(Operator, base)]
    own = [each for base in before_ours for each in attributes_of(base).items()]
    methods = {name: each for name, each in own if isinstance(each, FunctionType)}
    found = methods.keys() & meant.keys() - ours
    if not any(vars(base).get("inputs") == 2 for base in kind.__mro__):
        meant |= dict.fromkeys(OF_SECOND_INPUT, _TWO_INPUTS)
        found |= methods.keys() & set(OF_SECOND_INPUT)
    if found:
        for name in sorted(found - set(_used(methods.values()))):
            yield name, meant[name]


def outdone_process(kind: type[Operator]) -> type | None:
    """The class whose `process_batch` takes the records, where a `process` of the user's, of that class or one nearer
    to this one, is called by nothing. None: there is no such `process`.
    """
    if kind._is_async and not kind._takes_batches:
        return None
    calling = {*Operator.__mro__, *KeyedOperator.__mro__}
    for place, each in enumerate(kind.__mro__):
        method = vars(each).get("process_batch")
        if method is None or (each not in calling and "process_batch" in _used([method])):
            continue  # it goes on to that of its base
        before = [base for base in kind.__mro__[: place + 1] if isinstance(vars(base).get("process"), FunctionType)]
        if each in calling or not before or is_ours(before[0]):
            return None
        methods = [value for base in kind.__mro__ if base not in calling for value in attributes_of(base).values()]
        return None if "process" in _used(methods) else each
    return None


def _used(methods: Iterable[object]) -> Iterator[str]:
    for method in methods:
        method = getattr(method, "fget", method)
        if not isinstance(method, FunctionType):
            continue
        for code in codes_of(method.__code__):
            yield from code.co_names
