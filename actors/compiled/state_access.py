"""A declared state in a compiled `process`: `value`, `update`, `clear`, on the arrays of a SlotBackend."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core import cgutils, types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import AttributeTemplate, bound_function, signature
from numba.extending import infer_getattr, lower_builtin

from .function import NONE, compiled, counterpart
from .layout import STORED, Kind, StateFields
from .machine_code import as_tuple, load_cell, load_number, store_number, view
from .refusal import refuse, shown_type
from .types import NUMBERS, ReducingType, StateType


@infer_getattr
class _StateMethods(AttributeTemplate):
    key = StateType

    @bound_function("understudy.value")
    def resolve_value(self, state: Any, args: Any, kws: Any) -> Any:
        return signature(read_type(state)) if not args and not kws else None

    @bound_function("understudy.clear")
    def resolve_clear(self, state: Any, args: Any, kws: Any) -> Any:
        return signature(types.none) if not args and not kws else None

    @bound_function("understudy.update")
    def resolve_update(self, state: Any, args: Any, kws: Any) -> Any:
        if len(args) != 1 or kws:
            refuse(state.layout, f"self.{state.state.attribute}.update takes one value")
        given = types.unliteral(args[0])
        inner = given.type if isinstance(given, types.Optional) else given
        if not isinstance(inner, types.NoneType):
            _check_fits(state, inner)
        return signature(types.none, given)

    def generic_resolve(self, state: Any, name: str) -> Any:
        attribute = state.state.attribute
        refuse(state.layout, f"self.{attribute}.{name}: a compiled function has value, update and clear of a state")


@infer_getattr
class _ReducingMethods(AttributeTemplate):
    key = ReducingType

    @bound_function("understudy.get")
    def resolve_get(self, state: Any, args: Any, kws: Any) -> Any:
        return signature(types.Optional(state.value_type)) if not args and not kws else None

    @bound_function("understudy.clear")
    def resolve_clear(self, state: Any, args: Any, kws: Any) -> Any:
        return signature(types.none) if not args and not kws else None

    @bound_function("understudy.add")
    def resolve_add(self, state: Any, args: Any, kws: Any) -> Any:
        if len(args) != 1 or kws:
            refuse(state.layout, f"self.{state.state.attribute}.add takes one value")
        given = types.unliteral(args[0])
        _check_fits(state, given)
        _check_fits(state, _reduction(self.context, state, given)[1].return_type)
        return signature(types.none, given)

    def generic_resolve(self, state: Any, name: str) -> Any:
        refuse(state.layout, f"self.{state.state.attribute}.{name}: a compiled function has get, add and clear of it")


@cache
def _of_two(reduce: Any) -> Any:
    """A function such as `min`, which takes any number of values, for two."""

    def of_two(held: Any, added: Any) -> Any:
        return reduce(held, added)

    return compiled(of_two)


def _reduction(typingctx: Any, state: Any, given: Any) -> tuple[Any, Any]:
    """The compiled `reduce` of a ReducingState and its signature for what is held and a value of this type."""
    function = counterpart(state.state.reduce)
    if function is NONE:
        refuse(
            state.layout, f"the function of self.{state.state.attribute} is {state.state.reduce!r:.60}: wanted your own"
        )
    known = types.Dispatcher(function if isinstance(function, Dispatcher) else _of_two(state.state.reduce))
    return known, known.get_call_type(typingctx, (state.value_type, given), {})


def read_type(state: Any) -> Any:
    """The type of what `value` returns: it may be None where there is no default."""
    return state.value_type if state.state.default is not None else types.Optional(state.value_type)


def _check_fits(state: Any, given: Any) -> None:
    fields: StateFields = state.state
    where = f"self.{fields.attribute}"
    if fields.is_tuple != isinstance(given, types.BaseTuple):
        wanted = f"a tuple of {len(fields.kinds)} items" if fields.is_tuple else f"one {fields.kinds[0]}"
        refuse(state.layout, f"{where}.update takes {wanted}, found {shown_type(given)}")
    items = list(given.types) if fields.is_tuple else [given]
    if len(items) != len(fields.kinds):
        refuse(state.layout, f"{where}.update takes {len(fields.kinds)} items, found {len(items)}")
    for place, (item, kind) in enumerate(zip(items, fields.kinds, strict=True), 1):
        if not fits(item, kind):
            which = f"item {place} of {where}" if fields.is_tuple else where
            hint = ": declare a default of 0.0" if kind == "int" and isinstance(item, types.Float) else ""
            refuse(state.layout, f"{which} is of type {kind}, update gives {shown_type(item)}{hint}")


def fits(item: Any, kind: Kind) -> bool:
    """Whether a value of this type is kept without loss."""
    if kind == "bool":
        return isinstance(item, types.Boolean)
    if kind == "float" and isinstance(item, types.Float):
        return True
    return isinstance(item, types.Integer | types.Boolean)


@lower_builtin("understudy.value", StateType)
def _value(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (state,) = sig.args
    held = Held(context, builder, state, args[0])
    present, loaded = held.present(), held.load()
    if state.state.default is None:
        optional = context.make_helper(builder, sig.return_type)
        optional.valid, optional.data = present, as_tuple(context, builder, state.value_type, loaded)
        return optional._getvalue()
    defaults = [
        context.get_constant(NUMBERS[kind], value)
        for kind, value in zip(state.state.kinds, state.state.default, strict=True)
    ]
    chosen = [builder.select(present, value, default) for value, default in zip(loaded, defaults, strict=True)]
    return as_tuple(context, builder, state.value_type, chosen)


@lower_builtin("understudy.get", ReducingType)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _value(context, builder, sig, args)


@lower_builtin("understudy.add", ReducingType, types.Any)
def _add(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    state, given = sig.args
    held = Held(context, builder, state, args[0])
    with builder.if_else(held.present()) as (where_something_is, where_nothing_is):
        with where_something_is:
            before = as_tuple(context, builder, state.value_type, held.load())
            known, wanted = _reduction(context.typing_context, state, given)
            reduce = context.get_function(known, wanted)
            context.add_linking_libs(getattr(reduce, "libs", ()))
            pairs = zip((before, args[1]), (state.value_type, given), wanted.args, strict=True)
            held.store(wanted.return_type, reduce(builder, [context.cast(builder, *pair) for pair in pairs]))
        with where_nothing_is:
            held.store(given, args[1])
            held.set_present(True)
    return context.get_dummy_value()


@lower_builtin("understudy.clear", ReducingType)
@lower_builtin("understudy.clear", StateType)
def _clear(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    Held(context, builder, sig.args[0], args[0]).set_present(False)
    return context.get_dummy_value()


@lower_builtin("understudy.update", StateType, types.Any)
def _update(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    state, given = sig.args
    held = Held(context, builder, state, args[0])
    if isinstance(given, types.NoneType):
        held.set_present(False)
    elif isinstance(given, types.Optional):
        optional = context.make_helper(builder, given, value=args[1])
        held.set_present(optional.valid)
        held.store(given.type, optional.data)
    else:
        held.set_present(True)
        held.store(given, args[1])
    return context.get_dummy_value()


class Held:
    """What one state holds in one slot, as machine code sees it."""

    def __init__(self, context: Any, builder: Any, state: Any, value: Any) -> None:
        self._context, self._builder = context, builder
        self._seen = view(context, builder, state, value)
        self._fields: StateFields = state.state

    def present(self) -> Any:
        return load_number(self._builder, self._address(0), "bool", "u1", self._seen.row)

    def load(self) -> list[Any]:
        """The fields; whatever was there before if nothing is present."""
        return [
            load_number(self._builder, self._address(place), kind, STORED[kind], self._seen.row)
            for place, kind in enumerate(self._fields.kinds, 1)
        ]

    def set_present(self, value: Any) -> None:
        if isinstance(value, bool):
            value = cgutils.bool_t(value)
        store_number(self._builder, self._address(0), "u1", self._seen.row, value)

    def store(self, kind: Any, value: Any) -> None:
        """Put a value of this type, which fits, into the fields."""
        if self._fields.is_tuple:
            items = list(zip(kind.types, cgutils.unpack_tuple(self._builder, value, len(kind.types)), strict=True))
        else:
            items = [(kind, value)]
        for place, (wanted, (found, item)) in enumerate(zip(self._fields.kinds, items, strict=True), 1):
            cast = self._context.cast(self._builder, item, types.unliteral(found), NUMBERS[wanted])
            store_number(self._builder, self._address(place), STORED[wanted], self._seen.row, cast)

    def _address(self, place: int) -> Any:
        return load_cell(self._builder, self._seen.work, self._fields.cell + place)
