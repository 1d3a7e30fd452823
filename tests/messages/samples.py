"""Record types of users, in a module that both sides have loaded."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from enum import Enum, Flag, IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Side(Enum):
    BUY = "buy"
    SELL = "sell"


class Level(IntEnum):
    LOW = 1


class Rights(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Trade:
    symbol: str
    price: float
    side: Side = Side.BUY


@dataclass
class Counted:
    """The constructor does not take `total`, and `seen` changes after it."""

    start: int
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = self.start


@dataclass
class Tree:
    left: Tree | None = None
    right: Tree | None = None


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Positive:
    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise RuntimeError("not positive")


@dataclass
class NeedsMore:
    value: int
    more: InitVar[int]


class Outer:
    @dataclass
    class Inner:
        value: int


class _Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a metaclass was called")


@dataclass
class OfMetaclass(metaclass=_Meta):
    value: int = 0


@dataclass
class WithNew:
    value: int = 0

    def __new__(cls, *_: Any, **__: Any) -> WithNew:
        raise AssertionError("__new__ was called")


class Undecorated:
    def __init__(self, value: int) -> None:
        raise AssertionError("an ordinary class was built")


Alias = Trade
