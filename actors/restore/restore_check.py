"""Does a checkpoint fit a program that is to be started from it? Asked at submit, before anything is made.

State is matched by operator id. Flink: Checkpoints.loadAndValidateCheckpoint, StateAssignmentOperation's preconditions,
VertexFinishedStateChecker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from ...messages import JobGraph, JobVertex, OperatorDescription, OperatorId, StateDescription
from ...state.backends.stored_runs import format_of
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.columnar.group_sections import FORMAT_NAME as AGGREGATION_FORMAT
from ...state.columnar.rows_format import FORMAT_NAME as ROWS_FORMAT
from ...state.kinds.rows_fit import ROWS
from ...state.kinds.state_descriptions import (
    CALLS,
    conversion,
    is_columnar,
    is_keyed,
    names_of,
    state_change,
    state_misfit,
)
from ..errors import StateDoesNotFit
from .restore_notes import other_modes, restore_notes
from .restored_operators import FoundOperator, RestoredOperators, holds_something
from .swapped_inputs import swapped_inputs

CARRIED = "not declared, carried along"
"""Of state that a later program may declare again."""

_DATAFRAME_HINTS = {
    ("SparkSource", "ScanSource"): "; its DataFrame was read through Spark: from_dataframe(..., read_files=False)",
    ("ScanSource", "SparkSource"): "; its DataFrame was read from its files: give one that only scans files",
}
"""(Old source, new source) -> how to go back to the old one."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What fits. All in the order of the program, or of the checkpoint for what is left behind."""

    matched: tuple[str, ...]
    """Names of operators that find state."""
    fresh: tuple[str, ...]
    """Names of operators that declare state and find none: they start without state."""
    left_behind: tuple[OperatorId, ...]
    """Operators whose state, or some of whose state, nobody takes."""
    states: dict[str, str] = field(default_factory=dict)
    """By "operator.state", for each one that is taken over: "compatible", or "migrated: ..."; and for state by key that
    is not declared any more, CARRIED.
    """
    notes: tuple[str, ...] = ()
    """What may not be meant: see restore_notes."""


def check_restore(
    checkpoint: CompletedCheckpoint, graph: JobGraph, *, allow_non_restored_state: bool = False
) -> RestoreReport:
    """Raises StateDoesNotFit, with everything that is wrong at once."""
    return _Check(checkpoint, graph, allow_non_restored_state).report()


def with_carried_states(graph: JobGraph, checkpoint: CompletedCheckpoint) -> JobGraph:
    """The graph, whose operators know also of states that they carry along without declaring them any more.

    So that the metadata of its own checkpoints says so, for a later program that declares them again.
    """
    found = RestoredOperators(checkpoint, graph).found

    def described(operator: OperatorDescription) -> OperatorDescription:
        stored = found.get(operator.operator_id)
        if stored is None or stored.description is None:
            return operator
        return replace(operator, states=(*operator.states, *_not_declared(operator, stored)))

    vertices = (replace(each, operators=tuple(map(described, each.operators))) for each in graph.vertices)
    return replace(graph, vertices=tuple(vertices))


class _Check:
    def __init__(self, checkpoint: CompletedCheckpoint, graph: JobGraph, allow_non_restored_state: bool) -> None:
        self._checkpoint = checkpoint
        self._graph = graph
        self._allows = allow_non_restored_state
        self._restored = RestoredOperators(checkpoint, graph)
        self._pairs = [
            (vertex, operator, self._restored.found[operator.operator_id])
            for vertex in graph.vertices
            for operator in vertex.operators
            if operator.operator_id in self._restored.found
        ]
        """The program's operators that the checkpoint knows."""
        self._program = {operator.operator_id: operator for _, operator, _ in self._pairs}

    def report(self) -> RestoreReport:
        matched = [operator for _, operator, found in self._pairs if found.has_state]
        described = [operator for vertex in self._graph.vertices for operator in vertex.operators]
        report = RestoreReport(
            matched=tuple(each.name for each in matched),
            fresh=tuple(each.name for each in described if each.states and each not in matched),
            left_behind=tuple(each.operator_id for each in self._left_behind()),
            states={
                f"{operator.name}.{wanted.name}": state_change(wanted, state)
                for _, operator, found in self._pairs
                if found.has_state
                for wanted, state in _taken_over(operator, _stored(found))
            }
            | {
                f"{operator.name}.{state.name}": CARRIED
                for _, operator, found in self._pairs
                if _has_keyed(found) and not _lost_its_keys(operator, found)
                for state in _not_declared(operator, found)
                if is_keyed(state) and state != CALLS
            },
        )
        if problems := tuple(self._problems()):
            raise StateDoesNotFit(self._text(report, problems), report.matched, problems)
        return replace(report, notes=tuple(self._notes(described)))

    def _notes(self, described: Iterable[OperatorDescription]) -> list[str]:
        pairs = [
            (operator, found.description)
            for _, operator, found in self._pairs
            if found.description and _has_keyed(found) and not _lost_its_keys(operator, found)
        ]
        stored = [each.operator_id for each in self._restored.found.values() if each.has_state or _stored(each)]
        kept = {operator.operator_id: operator for operator, _ in pairs}
        return [
            *(note for pair in self._pairs for note in other_modes(*pair)),
            *restore_notes(pairs, (each for each in described if each.states), stored),
            *swapped_inputs(self._graph, self._checkpoint, kept),
        ]

    def _problems(self) -> Iterator[str]:
        if not self._allows:
            yield from (self._abandoned(each) for each in self._left_behind())
        for vertex, operator, found in self._pairs:
            yield from _misfits(operator, found)
            yield from _wrong_key_groups(vertex, operator, found)
            yield from _fixed_parallelism(vertex, operator, found)
            yield from self._ended_in_part(vertex, operator, found)
        yield from self._in_flight()

    def _abandoned(self, found: FoundOperator) -> str:
        """With the operator of today that has its name, and another uid."""
        text = _abandoned(found, self._program.get(found.operator_id))
        name = found.description and found.description.name
        described = (each for vertex in self._graph.vertices for each in vertex.operators)
        namesake = next(
            (each for each in described if each.name == name and each.operator_id != found.operator_id), None
        )
        if namesake is None or found.operator_id in self._program:
            return text
        return f"{text}; the program's {name!r} has the uid {namesake.operator_id!r}: .uid({str(found.operator_id)!r})"

    def _left_behind(self) -> Iterator[FoundOperator]:
        for found in self._restored.found.values():
            taken = self._program.get(found.operator_id)
            if (taken is None and found.has_state) or (taken is not None and _not_taken(taken, found)):
                yield found

    def _ended_in_part(self, vertex: JobVertex, operator: OperatorDescription, found: FoundOperator) -> Iterator[str]:
        """A source goes on from its offset, and a sink emits nothing, so it does not matter to them; nor to an operator
        that has no final results.
        """
        if operator.kind != "operator" or not operator.emits_at_end:
            return
        now, was, states = self._restored.ended[vertex.vertex_id], found.had_ended(), found.states()
        kept = now if len(now) == len(was) else [all(now)] * len(was)
        if any(
            done and not still and holds_something(state) for done, still, state in zip(was, kept, states, strict=True)
        ):
            yield (
                f"operator {operator.name!r} had taken all its input in {sum(was)} of its {len(was)} subtasks and "
                "emitted its final results there, and is not at the end of its input in the new program, where it "
                "would emit them again: keep its parallelism and what feeds it, or take a savepoint earlier"
            )

    def _in_flight(self) -> Iterator[str]:
        """Elements of a channel mean something only between the very same two vertices."""
        vertices = self._checkpoint.vertices
        if not any(state.channels for vertex in vertices.values() for state in vertex.subtasks.values()):
            return
        was = {each: (old.parallelism, _ids(old.operators), dict(old.inputs)) for each, old in vertices.items()}
        edges = list(enumerate(self._graph.edges))
        now = {
            each.vertex_id: (
                each.parallelism,
                _ids(each.operators),
                {index: edge for index, edge in edges if edge.target == each.vertex_id},
            )
            for each in self._graph.vertices
        }
        if was != now:
            changed = sorted(each for each in was.keys() | now.keys() if was.get(each) != now.get(each))
            yield (
                "the checkpoint is an unaligned one, with records that were on their way, so the job graph must be the "
                f"same in vertices, edges and parallelism; other than it was: {', '.join(changed)}. A savepoint can be "
                "restored into a changed program: take one"
            )

    def _text(self, report: RestoreReport, problems: tuple[str, ...]) -> str:
        lines = [f"- {problem}" for problem in problems]
        told = {
            "operators that match": report.matched,
            "operators that would start without state": report.fresh,
            "left behind": () if not self._allows else report.left_behind,
        }
        lines += [f"{what}: {', '.join(map(repr, names))}" for what, names in told.items() if names]
        checkpoint = f"checkpoint {self._checkpoint.checkpoint_id} of job {self._checkpoint.job_id}"
        return "\n".join([f"the state of {checkpoint} does not fit the program {self._graph.name!r}", *lines])


def _abandoned(found: FoundOperator, taken: OperatorDescription | None) -> str:
    name = repr(found.description.name) if found.description else "without a name"
    if taken is not None:
        what = ", ".join(_not_taken(taken, found))
        if what.endswith(_IN_FLIGHT):
            return (
                f"operator {taken.name!r} held {what}, and runs none now: they are in this savepoint alone. Leave it "
                "`async def process` (it need not await anything), or allow them to be lost (allow_non_restored_state)"
            )
        return (
            f"operator {taken.name!r} held {what}, and declares none such now: give it another name or uid if it is "
            "another operator, or allow state to be left behind (allow_non_restored_state)"
        )
    return (
        f"operator {name} (id {found.operator_id}) has state that no operator of the program takes over: let one have "
        "its name, or its uid, or allow state to be left behind (allow_non_restored_state)"
    )


def _not_taken(operator: OperatorDescription, found: FoundOperator) -> list[str]:
    """What the operator of this id had and declares no more: lists, state by key if none of it is left, and what its
    coroutines had in flight.

    Keyed state is carried along as long as there are keys; which of several states held something is not known here.
    """
    declared = {name for state in operator.states if not is_keyed(state) for name in names_of(state)}
    lost = [f"the list {name!r}" for name in _held_lists(found) if name not in declared]
    if _lost_its_keys(operator, found):
        lost.append("state by key")
    in_flight = 0 if CALLS in operator.states else _in_flight(found)
    return [*lost, f"{in_flight} {_IN_FLIGHT}"] if in_flight else lost


_IN_FLIGHT = "records that its coroutines had in flight"


def _in_flight(found: FoundOperator) -> int:
    return sum(handle.in_flight for state in found.states() for handle in state.keyed)


def _stored(found: FoundOperator) -> tuple[StateDescription, ...]:
    return found.description.states if found.description else ()


def _not_declared(operator: OperatorDescription, found: FoundOperator) -> Iterator[StateDescription]:
    """What this operator of the checkpoint held, as far as that is known, and declares no more."""
    declared = {(is_keyed(state), name) for state in operator.states for name in names_of(state)}
    return (each for each in _stored(found) if (is_keyed(each), each.name) not in declared)


def _lost_its_keys(operator: OperatorDescription, found: FoundOperator) -> bool:
    if not _has_keyed(found) or any(map(is_keyed, operator.states)):
        return False
    return any(is_keyed(state) for state in _stored(found) if state != CALLS) or CALLS not in _stored(found)


_IN_COLUMNS = {AGGREGATION_FORMAT: "a columnar aggregation", ROWS_FORMAT: "rows by key"}
"""What snapshots of these formats hold; a snapshot of another one holds states that are declared one by one."""


def _columnar_text(state: StateDescription) -> str:
    return _IN_COLUMNS[ROWS_FORMAT if state.kind == ROWS else AGGREGATION_FORMAT]


def _held_lists(found: FoundOperator) -> list[str]:
    return list(
        dict.fromkeys(handle.name for state in found.states() for handle in state.lists if len(handle.offsets) > 1)
    )


def _has_keyed(found: FoundOperator) -> bool:
    return any(state.keyed for state in found.states())


def _misfits(operator: OperatorDescription, found: FoundOperator) -> Iterator[str]:
    stored = _stored(found)
    held = _held_lists(found)
    has_keyed = _has_keyed(found)
    if has_keyed and not _lost_its_keys(operator, found):
        formats = {format_of(handle) for state in found.states() for handle in state.keyed}
        was = next(filter(None, map(_IN_COLUMNS.get, sorted(formats))), "keyed state of its own")
        now = next((_columnar_text(state) for state in operator.states if is_columnar(state)), "keyed state of its own")
        if was != now:
            yield f"operator {operator.name!r} held {was} and declares {now}: give it another name or uid"
            return
    yield from _of_another_sink(operator, stored, held)
    for wanted, state in _taken_over(operator, stored):
        if has_keyed if is_keyed(state) else state.name in held:
            yield from _misfit(operator, wanted, state)


def _of_another_sink(
    operator: OperatorDescription, stored: Iterable[StateDescription], held: Iterable[str]
) -> Iterator[str]:
    """None where the checkpoint describes no states: nobody knows what it holds."""
    names = {state.name for state in stored}
    for own in operator.states:
        if own.beside in names.intersection(held) and names.isdisjoint(names_of(own)):
            yield (
                f"operator {operator.name!r} held transactions of another kind of sink, one without {own.name!r}, and "
                "cannot commit them. Stop the job with a savepoint, which commits them all; then give this sink "
                "another name or uid, and allow state to be left behind (allow_non_restored_state)"
            )


def _taken_over(
    operator: OperatorDescription, stored: Iterable[StateDescription]
) -> Iterator[tuple[StateDescription, StateDescription]]:
    """Declared states and those that they take over."""
    declared = {(is_keyed(state), name): state for state in operator.states for name in names_of(state)}
    for state in stored:
        wanted = declared.get((is_keyed(state), state.name))
        if wanted is not None:
            yield wanted, state


def _misfit(operator: OperatorDescription, wanted: StateDescription, stored: StateDescription) -> Iterator[str]:
    if why := state_misfit(wanted, stored):
        if _is_of_the_operator(wanted):
            hint = "; give the operator another name or uid to start it empty"
        else:
            hint = f"; {conversion(wanted, stored)}give the state another name to start it empty"
        if stored.kind == "SourceOffset":
            hint = _DATAFRAME_HINTS.get((_source_of(stored), _source_of(wanted)), "")
        yield f"state {stored.name!r} of operator {operator.name!r} does not fit: {why}{hint}"


def _is_of_the_operator(state: StateDescription) -> bool:
    """Whether it is one of an operator of ours, so that a user can give it no name."""
    return is_columnar(state) or (isinstance(state.schema, dict) and "made by" in state.schema)


def _wrong_key_groups(vertex: JobVertex, operator: OperatorDescription, found: FoundOperator) -> Iterator[str]:
    was = found.vertex.max_parallelism
    if was != vertex.max_parallelism and _has_keyed(found):
        yield (
            f"operator {operator.name!r} was stored with max_parallelism {was} and has {vertex.max_parallelism} now, "
            f"which says how its keys are grouped: set StreamEnvironment(max_parallelism={was}), or write a savepoint "
            f"with its keys dealt out again: edit = Savepoint.open(path).edit(), edit.max_parallelism("
            f"{vertex.max_parallelism}), edit.write()"
        )


def _fixed_parallelism(vertex: JobVertex, operator: OperatorDescription, found: FoundOperator) -> Iterator[str]:
    was, now = found.vertex.parallelism, vertex.parallelism
    if operator.kind != "source" or was == now or not found.has_state:
        return
    if vertex.task_manager_bound:
        yield (
            f"source {operator.name!r} reads a DataFrame, which was in {was} partitions and would be in {now}: Spark "
            f"would put other rows into them than those that were read; give it parallelism={was} (operators after "
            "it may be rescaled)"
        )
    elif not _offset(operator).get("rescales", True):
        yield (
            f"source {operator.name!r} was stored with parallelism {was} and has {now} now, and a "
            f"{_offset(operator)['source']} cannot deal out its records again: give it parallelism={was} (operators "
            "after it may be rescaled)"
        )


def _source_of(state: StateDescription) -> str:
    return str(state.schema.get("source")) if isinstance(state.schema, dict) else ""


def _offset(operator: OperatorDescription) -> dict[str, Any]:
    """What a source says of its offset; nothing when it does not say."""
    schemas = (state.schema for state in operator.states if state.kind == "SourceOffset")
    return next(chain((schema for schema in schemas if isinstance(schema, dict)), [{}]))


def _ids(operators: tuple[OperatorDescription, ...]) -> list[OperatorId]:
    return [each.operator_id for each in operators]
