"""StreamGraph: the program as the user built it, one node per operator. Flink: StreamGraph.

Nodes are added in the order of the calls, so a node's inputs always come before it. `translation` turns the graph into
a JobGraph; nothing here knows about clusters, slots or chaining.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import pyarrow as pa

from ...actors.flow.key_selector import KeySelector
from ...actors.operators.operator import Operator
from ...messages import OperatorId, Partitioning, operator_id_of
from ..connectors.spark.stream_query import SparkStream
from .checks import at_least_or_none, text
from .errors import DuplicateName, NoSink
from .late_variables import Read, plain_variables
from .warned import warn

Role = Literal["source", "operator", "sink"]


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """From one node into a consumer. `partitioning` None: forward where parallelisms agree, else rebalance."""

    source: StreamNode
    partitioning: Partitioning | None = None
    selector: KeySelector | None = None
    input_index: int = 0
    output_tag: str = ""
    """Which side output of the source it is; empty: its main output."""
    tag_schema: pa.Schema | None = None
    feedback: bool = False
    """Whether it leads back, from a tail to the head of a loop."""
    by_round: bool = False
    """Of one that does: whether the loop goes in rounds."""

    @property
    def schema(self) -> pa.Schema | None:
        """Of what comes along it."""
        return self.tag_schema if self.output_tag else self.source.schema


@dataclass(slots=True, eq=False)
class StreamNode:
    """One operator of the program. Name and uid may change until the program is submitted."""

    position: int
    role: Role
    name: str
    operator: Operator
    inputs: tuple[StreamEdge, ...]
    schema: pa.Schema | None
    """Of what it emits; None for Python records, and for columns that are not known before the job runs."""
    bounded: bool
    parallelism: int | None
    slot_sharing_group: str
    uid: str | None = None
    dataframe: Any = None
    """The Spark DataFrame that a source reads."""
    spark_stream: SparkStream | None = None
    """The query of Spark whose batches a source reads."""
    follows_input: bool = False
    """Whether it has as many subtasks as what it reads, whatever `parallelism` says."""
    leads: bool = False
    """Whether what reads it by a forward edge follows it, if it has no parallelism of its own."""
    kind: str = ""
    """What the user called to make it, as "delta-iterate"; empty for a source."""
    feedback: tuple[StreamEdge, ...] = ()
    """Of the head of a loop, from its tails. Who follows `inputs` goes round no loop."""
    loop: StreamNode | None = None
    """The head of the loop that it is in."""
    plain_variables: Read = field(default_factory=dict)
    """Of the program, that its functions read, as they were when it was made."""

    @property
    def operator_id(self) -> OperatorId:
        """Derived from the uid, or else the name, so that the same program finds its state again."""
        return operator_id_of(self.uid or self.name)

    @property
    def selectors(self) -> tuple[KeySelector, ...]:
        """How the operator finds a record's key, per input; empty when its inputs are not keyed."""
        found = {edge.input_index: edge.selector for edge in self.inputs if edge.selector is not None}
        return tuple(selector for _, selector in sorted(found.items()))


@dataclass(slots=True)
class StreamGraph:
    """All nodes of one environment, with unique names."""

    nodes: list[StreamNode] = field(default_factory=list)

    def add(
        self,
        role: Role,
        operator: Operator,
        *,
        name: str,
        inputs: Sequence[StreamEdge] = (),
        schema: pa.Schema | None = None,
        bounded: bool = True,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        dataframe: Any = None,
        leads: bool = False,
        kind: str = "",
    ) -> StreamNode:
        """Append a node. `name` has been made by `name_for`, which keeps names unique."""
        follows = parallelism is None and len(inputs) == 1 and _is_led(inputs[0])
        node = StreamNode(
            position=len(self.nodes),
            role=role,
            name=name,
            operator=operator,
            inputs=tuple(inputs),
            schema=schema,
            bounded=bounded,
            parallelism=at_least_or_none(f"parallelism of {name!r}", parallelism, 1),
            slot_sharing_group=_slot_sharing_group(slot_sharing_group, inputs),
            dataframe=dataframe,
            follows_input=follows,
            leads=leads or follows,
            kind=kind,
        )
        node.plain_variables = plain_variables(operator, node.selectors)
        self.nodes.append(node)
        return node

    def name_for(self, explicit: str | None, kind: str) -> str:
        """The user's name, or else the kind in kebab case with the first free number: "flat-map-2"."""
        if explicit is not None:
            self._refuse_taken(text("name", explicit))
            return explicit
        taken = self._identities()
        stem, number = kebab_case(kind), 1
        while f"{stem}-{number}" in taken:
            number += 1
        return f"{stem}-{number}"

    def rename(self, node: StreamNode, name: str) -> None:
        self._refuse_taken(text("name", name), but=node)
        node.name = name

    def set_uid(self, node: StreamNode, uid: str) -> None:
        self._refuse_taken(text("uid", uid), but=node)
        node.uid = uid

    def runnable(self) -> list[StreamNode]:
        """The nodes that reach a sink, in order; warns of the others. Raises NoSink."""
        reached: set[int] = set()
        todo = [node for node in self.nodes if node.role == "sink"]
        while todo:
            node = todo.pop()
            if node.position not in reached:
                reached.add(node.position)
                todo += [edge.source for edge in (*node.inputs, *node.feedback)]
        if not reached:
            raise NoSink(
                f"nothing would run: {self._describe()}, and no sink; end a stream with sink_to, collect or print"
            )
        idle = [node.name for node in self.nodes if node.position not in reached]
        if idle:
            warn(
                f"these operators reach no sink and will not run: {', '.join(idle)}; end their stream with sink_to, "
                "collect or print, or take them out"
            )
        return [node for node in self.nodes if node.position in reached]

    def _describe(self) -> str:
        names = ", ".join(repr(node.name) for node in self.nodes)
        return f"the environment has the operators {names}" if names else "the environment has no operators"

    def _identities(self, but: StreamNode | None = None) -> dict[str, StreamNode]:
        return {identity: node for node in self.nodes if node is not but for identity in _identities_of(node)}

    def _refuse_taken(self, wanted: str, but: StreamNode | None = None) -> None:
        taken = self._identities(but).get(wanted)
        if taken is not None:
            of = f" of {', '.join(repr(edge.source.name) for edge in taken.inputs)}" if taken.inputs else ""
            named = "" if taken.name == wanted else f", named {taken.name!r}"
            kind = taken.kind or type(taken.operator).__name__
            raise DuplicateName(
                f"{wanted!r} is taken by another operator, the {kind}{of}{named}: names and uids "
                f"are unique; give one of the two another, such as {self._free(wanted)!r}"
            )

    def _free(self, name: str) -> str:
        taken = self._identities()
        return next(each for number in count(2) if (each := f"{name}-{number}") not in taken)


def kebab_case(name: str) -> str:
    """`WorstDelay` -> `worst-delay`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name.strip("_")).replace("_", "-").lower()


def _identities_of(node: StreamNode) -> Iterator[str]:
    yield node.name
    if node.uid is not None:
        yield node.uid


def _is_led(edge: StreamEdge) -> bool:
    return edge.source.leads and edge.partitioning is None


def _slot_sharing_group(explicit: str | None, inputs: Sequence[StreamEdge]) -> str:
    """As Flink: an operator joins the group of its inputs when they agree."""
    if explicit is not None:
        return text("slot_sharing_group", explicit)
    groups = {edge.source.slot_sharing_group for edge in inputs}
    return groups.pop() if len(groups) == 1 else "default"
