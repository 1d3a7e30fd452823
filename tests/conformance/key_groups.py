"""key_groups.json: ranges, owners, default maxima, and how operator lists are dealt out on a rescale.

Its `keys` are hashes of Java's boxed types. Ours is Java's for integers and texts, which are played; other types of
keys are hashed by what is equal to Python, and skipped (see `state/keys/key_hash.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from understudy.messages import OperatorListHandle
from understudy.state.checkpoints.assignment import intersection, redistribute_lists
from understudy.state.handle_bytes import inline_handle
from understudy.state.keys.key_groups import (
    KeyGroupRange,
    default_max_parallelism,
    java_hash,
    key_group,
    key_group_range,
    mix,
    operator_index_of,
)

from .scenario import REMARKS, Difference, Scenario, Skipped, UnknownWord, Words, compare, said, scenarios_of

KEYS = frozenset(
    {"ranges", "operator_index", "default_max_parallelism", "java_hash", "key_group_range_set", "redistribution"}
)
"""Words that only this schema has."""

MODES = {"SPLIT_DISTRIBUTE": "split", "SPLIT": "split", "UNION": "union", "BROADCAST": "broadcast"}

AS_IN_JAVA = frozenset({"int", "integer", "long", "short", "byte", "string"})
OWN_HASH = "our hash is our own where Python's equality is not Java's"


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "ranges", _ranges, _shape)
    yield from scenarios_of(document, "operator_index", _owners, _shape)
    yield from scenarios_of(document, "default_max_parallelism", _default, lambda case: str(case["parallelism"]))
    yield from scenarios_of(document, "keys", _key, lambda case: f"{case['type']} {case['key']}")
    yield from scenarios_of(document, "key_group_range_set", _range_set, lambda case: str(case))
    yield from scenarios_of(document, "redistribution", _redistribution)


def _shape(case: Words) -> str:
    return f"{case['parallelism']} of {case['max_parallelism']}"


def _or_error(ask: Callable[[], Any]) -> Any:
    """What it answers, or the word of the file for what is refused."""
    try:
        return ask()
    except ValueError:
        return "error"


def _ranges(case: Words) -> Iterator[Difference]:
    maximum, parallelism = case["max_parallelism"], case["parallelism"]
    found = _or_error(lambda: [list(key_group_range(maximum, parallelism, index)) for index in range(parallelism)])
    yield from compare("ranges", case["ranges"], found)


def _owners(case: Words) -> Iterator[Difference]:
    maximum, parallelism = case["max_parallelism"], case["parallelism"]
    found = [operator_index_of(group, maximum, parallelism) for group in range(maximum)]
    yield from compare("operator_index_of_key_group", case["operator_index_of_key_group"], found)


def _default(case: Words) -> Iterator[Difference]:
    found = _or_error(lambda: default_max_parallelism(case["parallelism"]))
    yield from compare("default_max_parallelism", case["default_max_parallelism"], found)


def _key(case: Words) -> Iterator[Difference]:
    if case["type"].lower() not in AS_IN_JAVA:
        raise Skipped(f"keys of type {case['type']}: {OWN_HASH}")
    if case["type"].lower() == "long" and -(2**31) <= case["key"] < 0:
        raise Skipped(f"long keys from -2**31 to -1, which are equal to an int of another hash: {OWN_HASH}")
    code = java_hash(case["key"])
    yield from compare("java_hash", case["java_hash"], code)
    told = said(case)
    yield from compare("mixed", told.get("mixed", mix(code)), mix(code))
    groups = told.get("key_group", {})
    yield from compare("key_group", groups, {maximum: key_group(case["key"], int(maximum)) for maximum in groups})


def _range_set(case: Words) -> Iterator[Difference]:
    if "intersection" in case:
        a, b = (KeyGroupRange(*case[name]).groups for name in "ab")
        both = intersection(a, b)
        yield from compare("intersection", case["intersection"] or None, [both[0], both[-1]] if both else None)
        return
    groups = KeyGroupRange(*case["range"]).groups
    for name, wanted in case.items():
        if name == "size":
            yield from compare(name, wanted, len(groups))
        elif name.startswith("contains_"):
            yield from compare(name, wanted, int(name.removeprefix("contains_")) in groups)
        elif name != "range" and name not in REMARKS:
            raise UnknownWord(f"found {name!r} about a range; wanted size or contains_N")


def list_handle(name: str, items: list[int], mode: str = "split", file: str = "f0") -> OperatorListHandle:
    """Item i begins at items[i]; a last offset ends the last item."""
    return OperatorListHandle(name, mode, (*items, items[-1] + 1) if items else (), inline_handle(file.encode()))


def named(share: list[OperatorListHandle]) -> dict[str, list[int]]:
    """As the file writes it: {'state@file': [items]}, without empty ones."""
    found: dict[str, list[int]] = defaultdict(list)
    for handle in share:
        assert handle.handle.data is not None
        found[f"{handle.name}@{handle.handle.data.decode()}"] += handle.offsets[:-1]
    return {name: items for name, items in found.items() if items}


def _redistribution(case: Words) -> Iterator[Difference]:
    old = [
        tuple(
            list_handle(row["state"], row["items"], MODES[row["mode"].upper()], row["file"])
            for row in case["state"]
            if row["subtask"] == index
        )
        for index in range(case["old_parallelism"])
    ]
    case = said(case)
    shares = [named(share) for share in redistribute_lists(old, case["new_parallelism"])]
    if case.get("exact", True) and "expected" in case:
        expected = [{name: items for name, items in share.items() if items} for share in case["expected"]]
        yield from compare("expected", expected, shares)
    for name, counts in case.get("expected_counts", {}).items():
        found = [sum(len(items) for at, items in share.items() if at.startswith(f"{name}@")) for share in shares]
        yield from compare(f"expected_counts of {name}", Counter(counts), Counter(found))
    yield from _nothing_lost(case, shares)


def _nothing_lost(case: Words, shares: list[dict[str, list[int]]]) -> Iterator[Difference]:
    """Of lists that are split every item is found once."""
    given, found = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    split = {f"{row['state']}@{row['file']}" for row in case["state"] if MODES[row["mode"].upper()] == "split"}
    for row in case["state"]:
        at = f"{row['state']}@{row['file']}"
        given.update((at, item) for item in row["items"] if at in split)
    for share in shares:
        found.update((at, item) for at, items in share.items() for item in items if at in split)
    yield from compare("items of split states", given, found)
