"""What the page shows of state, and the questions that it puts to operators. Pure functions.

Sizes and numbers of keys are those of each operator's newest snapshot, as its metrics have them.
"""

from __future__ import annotations

from typing import Any

from ...messages import AskOperator, JobMetrics, JobView, OperatorDescription, VertexMetrics
from ...state.keys.key_hash import InvalidKey, java_hash
from .errors import bad_request

Json = dict[str, Any]
OUTLIER = 1.5
"""A subtask with this many times the mean of its operator's state is marked."""
ANSWER_MS = 10_000


def state_of(view: JobView, metrics: JobMetrics | None) -> list[Json]:
    """Operator by operator, in the graph's order, those that declare state."""
    known = {each.vertex_id: each for each in metrics.vertices} if metrics is not None else {}
    return [
        _operator(vertex.name, one, known.get(vertex.vertex_id))
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


def shown(value: Any) -> Any:
    """An answer as JSON can say it: other values as Python writes them, such keys of a dict too."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else repr(value)
        case dict():
            return {name if isinstance(name, str) else repr(name): shown(each) for name, each in value.items()}
        case list() | tuple():
            return [shown(each) for each in value]
        case set() | frozenset():
            return sorted(map(shown, value), key=repr)
        case _:
            return repr(value)
