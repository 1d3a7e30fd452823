"""A peer's word makes this process build records and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import msgpack
import pytest

from understudy.messages import (
    MalformedMessage,
    UnsupportedValue,
    message,
    pack_plain,
    record_types,
    register_record_type,
    unpack_plain,
)

from . import samples
from .samples import NeedsMore, Positive, Trade

HERE = samples.__name__


@dataclass
class OfAScript:
    value: int


@message
class Question:
    about: str


def sent(name: Any, parts: Any) -> Any:
    """What a peer gets who sends this name and these parts."""
    return unpack_plain(msgpack.packb(msgpack.ExtType(6, msgpack.packb([name, parts]))))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A dataclass as a script that is run defines it."""
    monkeypatch.setattr(OfAScript, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "OfAScript", OfAScript, raising=False)
    monkeypatch.setattr(record_types, "_registered", {})
    record_types._is_harmless.cache_clear()
    yield OfAScript
    record_types._is_harmless.cache_clear()


def test_a_dataclass_of_a_loaded_module_travels() -> None:
    assert sent(f"{HERE}:Trade", {"symbol": "A", "price": 1.0}) == Trade("A", 1.0)
    assert sent(f"{HERE}:Outer.Inner", {"value": 1}) == samples.Outer.Inner(1)
    assert sent(f"{HERE}:Point", [1, 2]) == samples.Point(1, 2)
    assert sent(f"{HERE}:Side", "SELL") is samples.Side.SELL


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("understudy.runtime.clusters.task_manager_process:TaskManagerLaunch", {}),
        ("understudy.actors.tasks.task_manager:_Beat", {}),
        ("understudy.messages.registration:Heartbeat", {"sender": "x", "sequence": 1}),
        ("understudy.runtime.transport.frames:Header", [1, 2, 3, 4, 5]),
        ("understudy.actors.actor:Step", "BUSY"),
        ("dataclasses:Field", {}),
        ("pdb:Pdb", {}),
        ("builtins:print", {}),
        ("builtins:object", {}),
        ("collections:OrderedDict", {}),
        (f"{HERE}:Undecorated", {"value": 1}),
        (f"{HERE}:OfMetaclass", {}),
        (f"{HERE}:WithNew", {}),
        (f"{HERE}:Alias", {"symbol": "A", "price": 1.0}),
        (f"{HERE}:Any", {}),
        (f"{HERE}:dataclass", {}),
        (f"{HERE}:Outer.Missing", {}),
        (f"{HERE}:Outer.__class__", {}),
        (f"{HERE}:", {}),
        (HERE, {}),
        ("", {}),
        (":", {}),
        ("no.such.module:Trade", {}),
        (f"{__name__}:samples.Trade", {"symbol": "A", "price": 1.0}),
    ],
)
def test_what_is_no_record_type_is_not_built(name: str, parts: Any) -> None:
    with pytest.raises(MalformedMessage, match=r"no record type .* is loaded here"):
        sent(name, parts)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Trade", {"symbol": "A"}),
        ("Trade", {"symbol": "A", "price": 1.0, "extra": 1}),
        ("Trade", [1, 2]),
        ("Trade", "BUY"),
        ("Trade", {5: 1}),
        ("Positive", {"value": -1}),
        ("Point", [1, 2, 3]),
        ("Point", [1]),
        ("Point", 5),
        ("Point", None),
        ("Side", "NOWHERE"),
        ("Side", "mro"),
        ("Side", []),
        ("Counted", {"start": 1}),
    ],
)
def test_parts_that_do_not_fit_are_malformed_whatever_the_constructor_raises(name: str, parts: Any) -> None:
    with pytest.raises(MalformedMessage, match=f"no {HERE}:{name} can be made of what was sent"):
        sent(f"{HERE}:{name}", parts)


@pytest.mark.parametrize(
    ("name", "parts", "said"),
    [
        (
            "Trade",
            {"symbol": "A", "cost": 1.0},
            "it came with (symbol, cost), and the class has (symbol, price, side) today: 'cost' is not there any more "
            "and 'price' has no default; as keys, and where a state declares no type",
        ),
        ("Point", [1, 2, 3], "3 values for 2 fields; it has (x, y) today"),
        ("Side", "NOWHERE", "keep the member, or make its name that of another one, as NOWHERE = BUY in the class"),
        ("Trade", {"symbol": "A", "cost": 1.0}, "Savepoint.open(path).edit(), see docs/upgrades.md"),
    ],
)
def test_what_has_changed_in_the_class_is_said(name: str, parts: Any, said: str) -> None:
    with pytest.raises(MalformedMessage) as raised:
        sent(f"{HERE}:{name}", parts)
    assert said in str(raised.value)


def test_looking_up_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = ModuleType("lazy")

    def answer(name: str) -> Any:
        raise AssertionError(f"attribute {name} was asked for, and code ran")

    lazy.__getattr__ = answer  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    before = set(sys.modules)
    for name in ("lazy:Thing", "xml.dom.pulldom:PullDOM", "antigravity:x"):
        with pytest.raises(MalformedMessage):
            sent(name, {})
    assert set(sys.modules) == before


@pytest.mark.usefixtures("script")
def test_a_class_of_a_script_travels_only_when_both_sides_registered_it() -> None:
    with pytest.raises(UnsupportedValue, match="OfAScript of __main__ cannot be found by name elsewhere"):
        pack_plain(OfAScript(1))
    with pytest.raises(MalformedMessage):
        sent("__main__:OfAScript", {"value": 1})
    register_record_type(OfAScript)
    assert unpack_plain(pack_plain(OfAScript(1))) == OfAScript(1)


def test_the_main_module_has_one_name_also_where_multiprocessing_gives_it_another(script: Any) -> None:
    register_record_type(script)
    packed = pack_plain(script(1))
    script.__module__ = "__mp_main__"
    assert pack_plain(script(1)) == packed


def test_a_local_class_is_refused_where_it_is_sent() -> None:
    @dataclass
    class Local:
        value: int

    class Pair(NamedTuple):
        value: int

    for value in (Local(1), Pair(1)):
        with pytest.raises(UnsupportedValue, match="move it to the top level of a script or module"):
            pack_plain(value)


@pytest.mark.parametrize("cls", [samples.OfMetaclass, samples.WithNew, samples.Undecorated, int, Question])
def test_only_harmless_classes_can_be_registered(cls: type) -> None:
    if cls is Question:
        register_record_type(cls)
        return
    with pytest.raises(UnsupportedValue):
        register_record_type(cls)


def test_a_message_travels_as_a_message_wherever_its_class_is() -> None:
    @message
    class Local:
        value: int

    assert unpack_plain(pack_plain([Local(1)])) == [Local(1)]


def test_a_dataclass_that_cannot_be_made_again_is_refused_by_who_reads_it() -> None:
    with pytest.raises(MalformedMessage, match="missing 1 required positional argument"):
        unpack_plain(pack_plain(NeedsMore(1, 2)))
    positive = Positive(1)
    positive.value = -1
    with pytest.raises(MalformedMessage, match="not positive"):
        unpack_plain(pack_plain(positive))
