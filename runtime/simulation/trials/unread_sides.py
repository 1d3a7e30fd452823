"""UnreadSides: side outputs and late records of a user's job that no stream of it reads, found while it runs; and the
same job with a `collect()` for each, so that they are compared, too.

Left out are those whose contents are no result: of loops, and `errors`, where a record says how often it was
tried.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ....actors.async_calls.failed_record import ERRORS
from ....actors.operators.collector import Collector, OutputTag
from ....actors.operators.operator import Operator
from ...api.environment import StreamEnvironment
from ...api.stream import DataStream
from ...api.stream_graph import StreamEdge, StreamGraph


class UnreadSides:
    """Of one run of the job. `look_at`: stands before the calls of each operator that a task is given."""

    def __init__(self, env: StreamEnvironment) -> None:
        self._env = env
        self._filled: dict[str, set[str]] = defaultdict(set)
        """By the operator's name: the tags that it, in any of its subtasks, has sent something to."""

    def look_at(self, operator: Any) -> None:
        """Stand before the calls in which it emits. No collector is kept: it would be taken for one that the operator
        keeps.
        """
        for name in ("process_batch", "process_batch_2", "on_end"):
            if hasattr(operator, name):
                setattr(operator, name, self._watched(operator, getattr(operator, name)))

    def _watched(self, operator: Operator, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            result = call(*arguments)
            out = arguments[-1]
            if isinstance(out, Collector) and out.has_sides:
                self._filled[operator.context.name].update(out.side_names)
            return result

        return called

    def with_readers(self) -> tuple[StreamEnvironment, Mapping[str, str]]:
        """The job, whose side outputs are all read, and by the names of new sinks what each reads, in words. It is the
        same object if nothing is to be read.
        """
        env = self._env
        read = {(edge.source.name, edge.output_tag) for node in env.graph.nodes for edge in node.inputs}
        new = copy.copy(env)
        new.graph = StreamGraph(list(env.graph.nodes))
        told: dict[str, str] = {}
        for node in env.graph.nodes:
            for tag in sorted(self._filled[node.name] - {ERRORS.name}) if node.loop is None else ():
                if (node.name, tag) not in read:
                    stream = DataStream(new.graph, [StreamEdge(node)]).side_output(OutputTag(tag))
                    stream.collect(name=f"{node.name}-{tag}")
                    told[new.graph.nodes[-1].name] = f"side output {tag!r} of {node.name!r}, which no stream reads,"
        return (new, told) if told else (env, told)
