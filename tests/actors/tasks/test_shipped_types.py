"""Records of a script under `from __future__ import annotations`: their types travel, though their names stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

from understudy.actors.tasks.shipping import pickled
from understudy.messages import pack_plain, record_types, record_types_of_script, unpack_plain, with_record_types

SCRIPT = """
from __future__ import annotations
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Optional

if TYPE_CHECKING:
    from nowhere import Missing

@dataclass
class Item:
    sku: str
    quantity: int = 1

@dataclass
class Basket:
    kind: ClassVar[str] = "basket"
    items: list[Item]
    last: Optional[Item] = None
    before: Basket | None = None
    many: "list[Item]" = ()

@dataclass
class Bill:
    date: Optional[date] = None
    item: Item | None = None

class Place(NamedTuple):
    item: Item
    shelf: int

@dataclass
class Half:
    item: Item
    other: Missing

class Plain:
    item: Item
"""


ARRIVED = """
import json, sys, typing
import cloudpickle
from understudy.state.kinds.record_serializer import node_of
from understudy.state.kinds.schema_fit import schema_text
made = cloudpickle.load(open(sys.argv[1], "rb"))
found = {name: schema_text(node_of(made[name]).schema) for name in ("Item", "Basket", "Bill", "Place", "Half")}
half, plain = made["Half"].__annotations__, made["Plain"].__annotations__
found["of Half"] = [half["item"].__name__, half["other"]]
found["of Plain"] = plain
found["before"] = typing.get_type_hints(made["Basket"])["before"] == made["Basket"] | None
print(json.dumps(found))
"""
ITEM = "Item(sku: str, quantity: int)"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(compile(SCRIPT, "job.py", "exec", dont_inherit=True), vars(main))
    return vars(main)


def test_a_record_knows_the_types_of_its_fields_where_it_arrives(script: dict[str, Any], tmp_path: Path) -> None:
    names = ("Item", "Basket", "Bill", "Place", "Half", "Plain")
    before = {name: dict(script[name].__annotations__) for name in names}
    (tmp_path / "shipped").write_bytes(pickled({name: script[name] for name in names}))
    assert {name: script[name].__annotations__ for name in names} == before, "what is shipped is left as it was"
    done = subprocess.run(
        [sys.executable, "-c", ARRIVED, tmp_path / "shipped"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "Item": ITEM,
        "Basket": f"Basket(items: list[{ITEM}], last: {ITEM} | None, before: Basket | None, many: list[{ITEM}])",
        "Bill": f"Bill(date: date | None, item: {ITEM} | None)",
        "Place": f"Place(item: {ITEM}, shelf: int)",
        "Half": "Half(item: Any, other: Any)",
        "of Half": ["Item", "Missing"],
        "of Plain": {"item": "Item"},
        "before": True,
    }


def test_a_class_that_arrived_in_this_process_is_like_its_cell_run_again(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under `debug=True`: cloudpickle knows the class again, and gives it what has travelled."""
    monkeypatch.setattr(record_types, "_registered", {})
    types = record_types_of_script()
    before = cloudpickle.loads(pickled(script["Item"]))
    assert before is script["Item"]
    exec(compile(SCRIPT, "job.py", "exec", dont_inherit=True), script)
    after = script["Item"]
    assert after is not before
    packed = with_record_types(types, pack_plain, [after("a", 2)])
    assert with_record_types(types, unpack_plain, packed)[0].quantity == 2
