"""Attrs classes and Pydantic models of users, in a module that both sides have loaded."""

from __future__ import annotations

from typing import Any

import attrs
import pydantic


@attrs.define
class Leg:
    """Slotted, with an alias, a converter that would change a value again, and a field that `__init__` leaves out."""

    origin: str = attrs.field(converter=lambda value: value + "!")
    _delay: float = 0.0
    seen: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.seen = 100


@attrs.frozen(cache_hash=True)
class Route:
    origin: str
    destination: str = attrs.field(eq=str.lower, default="JFK")
    note: str = attrs.field(eq=False, default="")


@attrs.define(slots=False)
class Open:
    value: int
    twice: int = attrs.field(default=attrs.Factory(lambda self: self.value * 2, takes_self=True))
    items: list[int] = attrs.field(factory=list)


@attrs.define
class Unset:
    value: int = attrs.field(init=False)


@attrs.define
class WithNew:
    value: int = 0

    def __new__(cls, *_: Any, **__: Any) -> WithNew:
        raise AssertionError("__new__ was called")


class Visit(pydantic.BaseModel):
    """A validator that must not run again, a private attribute, and a default that was not given."""

    model_config = pydantic.ConfigDict(validate_assignment=True)

    count: int
    places: list[str] = pydantic.Field(default_factory=list)
    leg: Leg | None = None
    _secret: int = pydantic.PrivateAttr(default=3)

    model_config["arbitrary_types_allowed"] = True

    @pydantic.field_validator("count")
    @classmethod
    def _doubled(cls, value: int) -> int:
        return value * 2


class Loose(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    value: int


class Declared(pydantic.BaseModel):
    """As `Loose`, of which one of the extra values is a field now."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    value: int
    more: list[int] = []


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Guarded(pydantic.BaseModel):
    value: int
    _lock: Any = pydantic.PrivateAttr(default_factory=object)
