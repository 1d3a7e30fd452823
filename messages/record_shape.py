"""RecordShape: which fields the instances of a class of records have, and how one is taken apart and made again.

Records are dataclasses, named tuples, attrs classes and Pydantic models (version 2). The latter two are known by what
their decorator or metaclass leaves on the class, so neither package is imported, or needed.

Making a dataclass runs its `__init__`, with what that calls. Making an attrs instance or a model runs nothing: the
values come from one that was made and checked before, and a converter would convert them twice. So validators,
`__attrs_post_init__` and `model_post_init` do not run; private attributes, extra values and the set of fields of a
model come back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

from .errors import UnsupportedValue
from .shown import one_of_kind

Make: TypeAlias = Callable[[dict[str, Any], Any], Any]
"""From values by field and what is beside them to a record; raises whatever the class raises."""


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Of one class."""

    fields: tuple[str, ...]
    optional: frozenset[str]
    """Fields with a default, which `make` fills in."""
    later: frozenset[str]
    """Fields that the constructor does not take."""
    compared: tuple[tuple[str, Callable[[Any], Any] | None], ...]
    """The fields by which two records are equal, and how each is compared if not by its value."""
    make: Make
    is_frozen: bool = True
    """Whether its fields cannot be set once it is made."""
    beside: Callable[[Any], Any] | None = None
    """What a record holds beside its fields, as plain data; None, or returns None, where there is nothing."""

    def values(self, record: Any) -> dict[str, Any]:
        """By field, in order. Raises UnsupportedValue for a field that is not set."""
        try:
            return {name: getattr(record, name) for name in self.fields}
        except AttributeError:
            unset = next(name for name in self.fields if not hasattr(record, name))
            raise UnsupportedValue(f"field {unset!r} of {one_of_kind(type(record))} is not set") from None


@lru_cache(maxsize=1024)
def _shape_of(cls: Any) -> RecordShape | None:
    if is_dataclass(cls):
        return _of_dataclass(cls)
    if issubclass(cls, tuple):
        return _of_named_tuple(cls) if hasattr(cls, "_fields") else None
    if (attributes := _static(cls, "__attrs_attrs__")) is not None:
        return _of_attrs(cls, attributes)
    if (model_fields := _model_fields(cls)) is not None:
        return _of_model(cls, model_fields)
    return None


shape_of: Callable[[type], RecordShape | None] = _shape_of
"""The shape of a class of records; None for any other class. Runs no code of the class."""


def _static(cls: type, name: str) -> Any:
    """The attribute as it stands in the class or a base of it: nothing is asked for it."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


# -- dataclasses and named tuples


def _of_dataclass(cls: Any) -> RecordShape:
    every = fields(cls)
    later = frozenset(field.name for field in every if not field.init)
    optional = (f.name for f in every if f.default is not MISSING or f.default_factory is not MISSING)
    return RecordShape(
        fields=tuple(field.name for field in every),
        optional=frozenset(optional),
        later=later,
        compared=tuple((field.name, None) for field in every if field.compare),
        make=partial(_make_dataclass, cls, later),
        is_frozen=cls.__setattr__ is not object.__setattr__,
    )


def _make_dataclass(cls: Any, later: frozenset[str], values: dict[str, Any], _: Any = None) -> Any:
    if not later:
        return cls(**values)
    made = cls(**{name: value for name, value in values.items() if name not in later})
    for name in later & values.keys():
        object.__setattr__(made, name, values[name])
    return made


def _of_named_tuple(cls: Any) -> RecordShape:
    return RecordShape(
        fields=tuple(cls._fields),
        optional=frozenset(cls._field_defaults),
        later=frozenset(),
        compared=tuple((name, None) for name in cls._fields),
        make=partial(_make_named_tuple, cls),
    )


def _make_named_tuple(cls: Any, values: dict[str, Any], _: Any = None) -> Any:
    return cls(**values)


# -- attrs


def _of_attrs(cls: Any, attributes: Any) -> RecordShape:
    nothing = sys.modules["attr"].NOTHING
    defaults = {each.name: each.default for each in attributes if each.default is not nothing}
    names = tuple(each.name for each in attributes)
    code = getattr(cls.__hash__, "__code__", None)
    caches_hash = code is not None and "_attrs_cached_hash" in code.co_names
    return RecordShape(
        fields=names,
        optional=frozenset(defaults),
        later=frozenset(),
        compared=tuple((each.name, each.eq_key) for each in attributes if each.eq),
        make=partial(_make_attrs, cls, names, defaults, {"_attrs_cached_hash": None} if caches_hash else {}),
        is_frozen=cls.__setattr__.__name__ == "_frozen_setattrs",
    )


def _make_attrs(
    cls: Any,
    names: tuple[str, ...],
    defaults: dict[str, Any],
    hidden: dict[str, Any],
    values: dict[str, Any],
    _: Any = None,
) -> Any:
    _check_names(names, defaults, values)
    made = object.__new__(cls)
    for name in names:
        value = values[name] if name in values else _attrs_default(defaults[name], made)
        object.__setattr__(made, name, value)
    for name, value in hidden.items():
        object.__setattr__(made, name, value)
    return made


def _attrs_default(default: Any, made: Any) -> Any:
    if type(default) is not sys.modules["attr"].Factory:
        return default
    return default.factory(made) if default.takes_self else default.factory()


# -- Pydantic


def _model_fields(cls: type) -> Any:
    """The fields of a model of Pydantic 2; before 2.10 they stood under their public name only."""
    if _static(cls, "__pydantic_validator__") is None and _static(cls, "__pydantic_complete__") is None:
        return None
    found = _static(cls, "__pydantic_fields__")
    found = _static(cls, "model_fields") if found is None else found
    return found if isinstance(found, dict) else None


def _of_model(cls: Any, model_fields: dict[str, Any]) -> RecordShape:
    names = tuple(model_fields)
    optional = {name: field for name, field in model_fields.items() if not field.is_required()}
    return RecordShape(
        fields=names,
        optional=frozenset(optional),
        later=frozenset(),
        compared=tuple((name, None) for name in names),
        make=partial(_make_model, cls, names, optional),
        is_frozen=bool(cls.model_config.get("frozen")),
        beside=partial(_beside_model_fields, frozenset(names)),
    )


def _beside_model_fields(names: frozenset[str], model: Any) -> list[Any] | None:
    """The names of the fields that were given, extra values, and private ones; None if all were, and there are none."""
    given, extra, private = model.__pydantic_fields_set__, model.__pydantic_extra__, model.__pydantic_private__
    if given >= names and not extra and private is None:
        return None
    undefined = sys.modules["pydantic_core"].PydanticUndefined
    private = private and {name: value for name, value in private.items() if value is not undefined}
    return [sorted(given & names), extra, private]


def _make_model(
    cls: Any, names: tuple[str, ...], optional: dict[str, Any], values: dict[str, Any], beside: Any = None
) -> Any:
    given, extra, private = beside or (values, None, None)
    if extra is None and cls.model_config.get("extra") == "allow":
        extra = {}
    _check_beside(extra, private)
    if extra and (declared := [name for name in names if name in extra]):
        values = {name: extra[name] for name in declared} | values
        given, extra = {*given, *declared}, {name: value for name, value in extra.items() if name not in declared}
    _check_names(names, optional, values)
    filled: dict[str, Any] = {}
    for name in names:
        filled[name] = values[name] if name in values else _model_default(optional[name], filled)
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", filled)
    object.__setattr__(made, "__pydantic_fields_set__", set(given) & filled.keys() | (extra or {}).keys())
    object.__setattr__(made, "__pydantic_extra__", extra)
    object.__setattr__(made, "__pydantic_private__", private)
    return made


def _model_default(field: Any, values: dict[str, Any]) -> Any:
    if getattr(field, "default_factory_takes_validated_data", False):
        return field.get_default(call_default_factory=True, validated_data=values)
    return field.get_default(call_default_factory=True)


def _check_beside(*maps: Any) -> None:
    for each in maps:
        if each is not None and not (isinstance(each, dict) and all(isinstance(name, str) for name in each)):
            raise ValueError("extra and private values are maps by name")


def _check_names(names: tuple[str, ...], optional: Any, values: Any) -> None:
    if not isinstance(values, dict):
        raise TypeError(f"wanted values by field, found a {type(values).__name__}")
    if strange := [name for name in values if name not in names]:
        raise ValueError(f"there is no field {strange[0]!r}")
    if missing := [name for name in names if name not in values and name not in optional]:
        raise ValueError(f"field {missing[0]!r} is missing")
