"""UnreadSides: side outputs and late records of a user's job that no stream of it reads, found while it runs; and the
same job with a `collect()` for each, so that they are compared, too.

Left out are those whose contents are no result: of loops, and `errors`, where a record says how often it was
tried.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
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
        self._outs: dict[str, list[Collector]] = {}
        """By the operator's name: where it, in each of its subtasks, puts what it emits."""

    def look_at(self, operator: Operator) -> None:
        """Remember the collector that it is first called with."""
        for name in ("process_batch", "process_batch_2"):
            if hasattr(operator, name):
                self._look_at(operator, name)

    def _look_at(self, operator: Any, name: str) -> None:
        process = getattr(operator, name)

        def called(batch: Any, out: Collector) -> Any:
            self._outs.setdefault(operator.context.name, []).append(out)
            setattr(operator, name, process)
            return process(batch, out)

        setattr(operator, name, called)

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
            tags = {tag for out in self._outs.get(node.name, ()) for tag in out.side_names}
            for tag in sorted(tags - {ERRORS.name}) if node.loop is None else ():
                if (node.name, tag) not in read:
                    stream = DataStream(new.graph, [StreamEdge(node)]).side_output(OutputTag(tag))
                    stream.collect(name=f"{node.name}-{tag}")
                    told[new.graph.nodes[-1].name] = f"side output {tag!r} of {node.name!r}, which no stream reads,"
        return (new, told) if told else (env, told)
