"""What the page shows of state, and the questions that it puts to operators. Pure functions.

Sizes and numbers of keys are those of each operator's newest snapshot, as its metrics have them.
"""

from __future__ import annotations

from typing import Any

from ...messages import (
    AskOperator,
    JobMetrics,
    JobView,
    KeyGroups,
    OperatorDescription,
    OperatorKeyGroups,
    VertexMetrics,
)
from ...state.keys.key_hash import InvalidKey, java_hash
from .errors import bad_request

Json = dict[str, Any]
OUTLIER = 1.5
"""A subtask with this many times the mean of its operator's state is marked."""
HOT = 4.0
"""A key group with this many times the mean of those that hold state is marked."""
ANSWER_MS = 10_000


def state_of(view: JobView, metrics: JobMetrics | None, key_groups: KeyGroups | None) -> list[Json]:
    """Operator by operator, in the graph's order, those that declare state."""
    known = {each.vertex_id: each for each in metrics.vertices} if metrics is not None else {}
    groups = {each.operator_id: each for each in key_groups.operators} if key_groups is not None else {}
    return [
        _operator(vertex.name, one, known.get(vertex.vertex_id)) | _groups(one.name, groups.get(one.operator_id))
        for vertex in view.graph.vertices
        for one in vertex.operators
        if one.states
    ]


def _operator(vertex: str, one: OperatorDescription, metrics: VertexMetrics | None) -> Json:
    rows = metrics.subtasks if metrics is not None else ()
    sizes = {each.subtask_index: each.values.get(f"{one.name}.stateSize") for each in rows}
    known = {index: size for index, size in sizes.items() if size is not None}
    mean = sum(known.values()) / len(known) if known else 0.0
    entries = [each.values.get(f"{one.name}.stateEntries") for each in rows]
    counted = [each for each in entries if each is not None]
    return {
        "vertex": vertex,
        "operator": one.name,
        "states": [{"name": each.name, "kind": each.kind} for each in one.states],
        "bytes": sum(known.values()) if known else None,
        "entries": sum(counted) if counted else None,
        "subtasks": [known.get(index) for index in sorted(sizes)],
        "outliers": [index for index, size in known.items() if len(known) > 1 and size > OUTLIER * mean > 0],
    }


def _groups(operator: str, found: OperatorKeyGroups | None) -> Json:
    """The largest key groups, with a sentence that says what is to be seen of them."""
    if found is None or not found.size_bytes:
        return {"groups": [], "spread": "", "hot": False}
    first, shares = found.largest[0], [each.size_bytes / found.size_bytes for each in found.largest]
    times = shares[0] * found.occupied
    is_hot = found.occupied > 1 and times > HOT
    said = (
        f"Key group {first.key_group} of {found.max_parallelism} holds {_percent(shares[0])} of the keyed state of "
        f"{operator}: subtask {first.subtask_index} has it."
    )
    if found.occupied > 1:
        said += f" {found.occupied} key groups hold state, and it has {times:.1f} times their mean"
        said += (
            ": few keys have most of it, and as a key group is never split, more subtasks do not help."
            if is_hot
            else "."
        )
    return {
        "groups": [
            {"group": each.key_group, "subtask": each.subtask_index, "bytes": each.size_bytes, "share": round(share, 4)}
            for each, share in zip(found.largest, shares, strict=True)
        ],
        "spread": said,
        "hot": is_hot,
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def question(view: JobView, wanted: Json) -> AskOperator:
    """Of {"operator": "...", "key": 3, "question": {...}}; `key` may be absent. Raises HttpError."""
    operator = wanted.get("operator")
    known = [one.name for vertex in view.graph.vertices for one in vertex.operators]
    if operator not in known:
        raise bad_request(f"operator: wanted one of {', '.join(map(repr, known))[:500]}, found {operator!r:.100}")
    key = _key(wanted.get("key"))
    if "key" in wanted:
        try:
            java_hash(key)
        except InvalidKey as error:
            raise bad_request(f"key: {error}") from error
    asked = wanted.get("question")
    return AskOperator(view.graph.job_id, operator, "key" in wanted, key, None, asked, ANSWER_MS)


def _key(value: Any) -> Any:
    """JSON has no tuples, and lists are no keys."""
    return tuple(map(_key, value)) if isinstance(value, list) else value


def as_json(value: Any) -> Any:
    """An answer as JSON can say it: other values as Python writes them, such keys of a dict too."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else repr(value)
        case dict():
            return {name if isinstance(name, str) else repr(name): as_json(each) for name, each in value.items()}
        case list() | tuple():
            return [as_json(each) for each in value]
        case set() | frozenset():
            return sorted(map(as_json, value), key=repr)
        case _:
            return repr(value)
