"""streams_shown: a stream as `print`, an f-string or a debugger shows it, and the text about `len`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...messages import Partitioning
from ...messages.missing_column import those_there_are
from .stream_graph import StreamEdge, StreamNode

_NO_RECORDS: Final = (
    "Its records are where the job runs: to see them, write .print() or .collect(name='rows') behind it, and "
    "cluster.submit(env).wait() to run it"
)
NO_LENGTH: Final = (
    "a stream has no records before its job runs, and so no number of them: write "
    "key_by(...).aggregate(count=Count()) for their number; or end it with collect(name='rows'), and "
    "write len(job.results('rows')) behind job.wait()"
)


def stream_shown(kind: str, edges: Sequence[StreamEdge], keys: Sequence[Any] = ()) -> str:
    """A stream in one line. `kind`: the name of its class."""
    origins = [_origin(each) for each in edges]
    schema = edges[0].schema if len(edges) == 1 else None
    columns = "" if schema is None else f", with columns {those_there_are(None, schema.names)}"
    keyed = f" keyed by {', '.join(map(_key, keys))}," if keys else ""
    sent = {Partitioning.BROADCAST: " broadcast,", Partitioning.REBALANCE: " rebalanced,"}
    way = sent.get(edges[0].partitioning, "") if edges[0].partitioning else ""
    return f"<{kind}{keyed}{way} from {' and '.join(origins)}{columns}. {_NO_RECORDS}>"


def node_shown(node: StreamNode) -> str:
    """An operator in some words."""
    if node.parallelism is not None:
        size = f"parallelism {node.parallelism}"
    else:
        size = "parallelism of its input" if node.follows_input else "default parallelism"
    return f"{node.role} {node.name!r} ({size})"


def names_of(edges: Sequence[StreamEdge]) -> str:
    """Whose records come on them."""
    return " and ".join(repr(each.source.name) for each in edges)


def _origin(edge: StreamEdge) -> str:
    beside = f"side output {edge.output_tag!r} of " if edge.output_tag else ""
    return f"{beside}{node_shown(edge.source)}"


def _key(key: Any) -> str:
    name = getattr(key, "__qualname__", "")
    if not name:
        return repr(key)
    return "a lambda" if name.endswith("<lambda>") else f"{name}(record)"
