"""iterations.json: jobs with `bulk_iterate` and `delta_iterate` in a simulated cluster, with two subtasks each.

Supersteps are counted where records are: those in which the step gets any. What the delta of a superstep was, the next
one gets; of the last, what the loop is left with. `delta_iterate` takes no criterion; a step that gets fewer records
than it wants begins no superstep.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from understudy import (
    DataStream,
    KeyedOperator,
    ListState,
    Operator,
    OutputTag,
    StreamEnvironment,
    ValueState,
    tumbling,
)
from understudy.actors.operators.loops import RESULT
from understudy.testing import SimulatedCluster

from .iteration_words import criterion, effect_of, formula, key_step_of, part, reduction_of, solution_of
from .scenario import Difference, Scenario, UnknownWord, Words, compare, said, scenarios_of

KEYS = frozenset({"bulk", "delta", "connected_components"})
"""Words that only this schema has."""

PARALLELISM = 2
DANGLING_EPSILON = 0.00005
"""Of pages with dangling ones: told in the words of their notes alone."""


def scenarios(document: Words) -> Iterator[Scenario]:
    graphs = Graphs(document)
    yield from scenarios_of(document, "bulk", partial(_play, _bulk, graphs))
    yield from scenarios_of(document, "delta", partial(_play, _delta, graphs))
    yield from scenarios_of(document, "connected_components", partial(_play, _components, graphs))


class Graphs:
    """By name, those of connected_components; scenarios of the other sections use them."""

    def __init__(self, document: Words) -> None:
        self._document = document

    def of(self, words: Words) -> Words:
        name = words["graph"]
        for each in self._document.get("connected_components", []):
            if each["name"] == name:
                return dict(each)
        raise UnknownWord(f"found the graph {name!r}; wanted one of this file's connected_components")


@dataclass(slots=True)
class Course:
    """What came of an iteration."""

    result: list[Any]
    worksets: Counter[int]
    """By superstep, how many records it began with."""
    left: int
    """How many records the last one has sent back, when no other followed."""
    supersteps: int
    """In so many the step has worked."""
    sums: list[int]
    """By superstep, what its aggregate was."""

    @property
    def updates(self) -> list[int]:
        """Of a delta iteration, by superstep: what it has changed is what the next one begins with."""
        if self.supersteps == 0:
            return []
        following = [self.worksets[number + 1] for number in range(1, self.supersteps + 1)]
        return [*following[:-1], following[-1] + self.left]


Found = Mapping[str, Any]
"""By the words of what a scenario expects."""


def _play(course_of: Callable[[Words, Graphs], Found], graphs: Graphs, words: Words) -> Iterator[Difference]:
    words = said(words)
    expected = {name: wanted for name, wanted in words.items() if name.startswith("expected")}
    found = course_of(words, graphs)
    for name, wanted in expected.items():
        if name not in found:
            raise UnknownWord(f"nothing can be said about {name!r}")
        yield from _compared(name, wanted, found[name], words.get("tolerance"))


def _compared(name: str, wanted: Any, found: Any, tolerance: float | None) -> Iterator[Difference]:
    if tolerance is None or name == "expected_supersteps":
        yield from compare(name, wanted, found)
    elif isinstance(wanted, dict):
        yield from compare(f"{name}: pages", sorted(wanted), sorted(found))
        for key in wanted:
            yield from _compared(f"{name} of {key}", wanted[key], found[key], tolerance)
    elif abs(wanted - found) > tolerance:
        yield Difference(name, wanted, found)


# ---- operators of the steps


class Supersteps(Operator):
    """In place of each record, the superstep that it is in."""

    takes = "any"

    def process_batch(self, batch: Any, out: Any) -> None:
        out.emit(self.timestamps.tolist())


class InSuperstep(KeyedOperator):
    """Each record with its superstep."""

    def process(self, record: Any, out: Any) -> None:
        out.collect((self.timestamp, record))


Emit = Callable[[int, list[Any], list[Any]], Sequence[Any]]
"""(superstep, records of a key in it, static records of the key) -> records."""


class AtRoundEnd(KeyedOperator):
    """Keeps the records of a round and what came on the static input, by key; `emit` sees both when it is over."""

    inputs = 2
    kept = ListState(object)
    static = ListState(object)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def process(self, record: Any, out: Any) -> None:
        self.kept.add(record)
        self.timers.at_event_time(self.timestamp)

    def process_2(self, record: Any, out: Any) -> None:
        self.static.add(record)

    def on_timer(self, timer: Any, out: Any) -> None:
        records = list(self.kept.get())
        self.kept.clear()
        for each in self._emit(timer.time_ms, records, list(self.static.get())):
            out.collect(each)


class Least(KeyedOperator):
    """A bulk iteration's components: of each vertex the least that came in a round; and who has changed."""

    CHANGED = OutputTag("changed")
    known = ValueState(int)
    least = ValueState(int)

    def process(self, record: tuple[int, int], out: Any) -> None:
        best = self.least.value()
        self.least.update(record[1] if best is None else min(best, record[1]))
        self.timers.at_event_time(self.timestamp)

    def on_timer(self, timer: Any, out: Any) -> None:
        known, least = self.known.value(), self.least.value()
        out.collect((self.key, least))
        out.collect_to(self.CHANGED, int(least != (self.key if known is None else known)))
        self.known.update(least)


def one_key(record: Any) -> int:
    return 0


def first(record: Any) -> Any:
    return record[0]


def with_static(loop: DataStream, static: DataStream, emit: Emit, key: Callable[[Any], Any] = one_key) -> DataStream:
    return loop.key_by(key).connect(static.key_by(key)).process(AtRoundEnd(emit))


def total(numbers: DataStream) -> DataStream:
    """Their sum in each superstep, of all subtasks."""
    return numbers.window_all(tumbling(1)).reduce(operator.add)


# ---- jobs


class Bench:
    """One job of one iteration, and what it collects."""

    def __init__(self) -> None:
        self.env = StreamEnvironment(parallelism=PARALLELISM)
        self._takes_sums = False

    def stream(self, records: Sequence[Any]) -> DataStream:
        return self.env.from_collection(list(records))

    def watch(self, loop: DataStream, work: DataStream | None = None) -> None:
        """`work`: what the step works on, if that is not all that it gets."""
        loop.process(Supersteps()).collect(name="worksets")
        loop.side_output(RESULT).collect(name="left")
        (loop if work is None else work).process(Supersteps()).collect(name="supersteps")

    def watch_sums(self, sums: DataStream) -> None:
        self._takes_sums = True
        sums.key_by(one_key).process(InSuperstep()).collect(name="sums")

    def course(self, result: DataStream) -> Course:
        result.collect(name="result")
        with SimulatedCluster(PARALLELISM) as cluster:
            job = cluster.submit(self.env)
            job.wait()
            sums = sorted(job.results("sums")) if self._takes_sums else []
            return Course(
                job.results("result"),
                Counter(job.results("worksets")),
                len(job.results("left")),
                max(job.results("supersteps"), default=0),
                [count for _, count in sums],
            )


# ---- bulk iterations


def _bulk(words: Words, graphs: Graphs) -> Found:
    match words["kind"]:
        case "pagerank":
            return _page_rank(words)
        case "components_bulk":
            return _components_in_bulk(words, graphs.of(words) if "graph" in words else words)
        case "map" | "reduce" | "union" | "aggregator":
            return _values(words)
    raise UnknownWord(f"found a bulk iteration of kind {words['kind']!r}")


def _values(words: Words) -> Found:
    bench = Bench()
    records = words.get("static", words["input"])

    def step(loop: DataStream) -> Any:
        bench.watch(loop)
        new = _step_of(words["step"], loop, lambda: bench.stream(records))
        if (wanted := words.get("continue_while_any")) is not None:
            return new, _criterion_of(wanted, loop, new)
        if (aggregate := words.get("aggregate")) is not None:
            return new, _while_not_converged(bench, _aggregate_of(aggregate, new), words.get("converged_when"))
        return new

    course = bench.course(bench.stream(words["input"]).bulk_iterate(step, max_rounds=words["max_supersteps"]))
    return {
        "expected": sorted(course.result),
        "expected_size": len(course.result),
        "expected_supersteps": course.supersteps,
        "expected_aggregates": course.sums,
    }


def _step_of(text: str, loop: DataStream, static: Callable[[], DataStream]) -> DataStream:
    """What the words of a step say."""
    if text == "group by id, pass on":
        return with_static(loop, static(), lambda _number, records, _static: records, lambda x: x)
    if text.startswith("first element y of the static input with y > x"):
        return with_static(loop, static(), _next_greater)
    if (reduction := reduction_of(text)) is not None:
        reduce, of_each = reduction
        return loop.map(of_each).window_all(tumbling(1)).reduce(reduce)
    parts = [each.strip() for each in text.replace(" union ", " + ").split("+")]
    if set(parts) <= {"static", "S"} and "S" in parts:
        loops, statics = parts.count("S"), parts.count("static")
        again = with_static(loop, static(), lambda _number, _records, of_all: of_all * statics)
        return again.union(loop.flat_map(lambda x: [x] * loops))
    return loop.map(formula(text))


def _next_greater(_number: int, records: list[int], static: list[int]) -> list[int]:
    """Where several are iterated, as in the first superstep, x is the least."""
    x = min(records)
    return [next((y for y in sorted(static) if y > x), x)]


def _criterion_of(text: str, old: DataStream, new: DataStream) -> DataStream:
    is_about_old, condition = criterion(text)
    return (old if is_about_old else new).filter(condition)


def _aggregate_of(text: str, new: DataStream) -> DataStream:
    if text == "sum of new values":
        return total(new)
    counted = part(r"number of new values ?(.*)", text)
    if counted is None:
        raise UnknownWord(f"found the aggregate {text!r}; wanted 'number of new values' with a condition")
    is_counted = formula(f"x {counted}" if counted else "1")
    return total(new.map(lambda x: int(is_counted(x))))


def _while_not_converged(bench: Bench, sums: DataStream, text: str | None) -> DataStream:
    is_converged = (lambda _: False) if text is None else formula(text)
    bench.watch_sums(sums)
    return sums.filter(lambda x: not is_converged(x))


def _page_rank(words: Words) -> Found:
    """Records are (page, rank). A dangling page gives its rank to all pages alike."""
    bench = Bench()
    pages, damping, dangling = words["pages"], words["damping"], frozenset(words.get("dangling", []))
    links = bench.stream([(source, target) for source, target in words["links"]])

    def spread(_number: int, ranks: list[tuple[int, float]], links: list[tuple[int, int]]) -> list[Any]:
        ((page, rank),) = ranks
        targets = list(range(1, pages + 1)) if page in dangling else [target for _, target in links]
        return [(page, 0.0, rank), *((target, rank / len(targets), None) for target in targets)]

    def summed(one: Any, other: Any) -> Any:
        return one[0], one[1] + other[1], other[2] if one[2] is None else one[2]

    def step(loop: DataStream) -> Any:
        bench.watch(loop)
        received = with_static(loop, links, spread, first).key_by(0).window(tumbling(1)).reduce(summed)
        ranked = received.map(lambda x: (x[0], damping * x[1] + (1 - damping) / pages, x[2]))
        new = ranked.map(lambda x: (x[0], x[1]))
        changes = ranked.map(lambda x: abs(x[1] - x[2]))
        if dangling:
            epsilon = words.get("epsilon", DANGLING_EPSILON)
            return new, total(changes).filter(lambda x: x >= epsilon)
        return new, changes.filter(lambda x: x > words["epsilon"])

    start = bench.stream([(page, 1 / pages) for page in range(1, pages + 1)])
    course = bench.course(start.bulk_iterate(step, max_rounds=words["max_supersteps"]))
    ranks = {str(page): rank for page, rank in course.result}
    return {
        "expected_rank": ranks,
        "expected_rank_sum": sum(ranks.values()),
        "expected_supersteps": course.supersteps,
    }


def _components_in_bulk(words: Words, graph: Words) -> Found:
    bench = Bench()
    edges = _edges(bench, graph)

    def step(loop: DataStream) -> Any:
        bench.watch(loop)
        least = loop.union(with_static(loop, edges, _to_neighbours, first)).key_by(0).process(Least())
        changed = least.side_output(Least.CHANGED)
        return least, _while_not_converged(bench, total(changed), words.get("converged_when"))

    vertices = bench.stream([(each, each) for each in graph["vertices"]])
    course = bench.course(vertices.bulk_iterate(step, max_rounds=words["max_supersteps"]))
    return _of_components(course, course.sums)


# ---- delta iterations


def _delta(words: Words, graphs: Graphs) -> Found:
    if "graph" in words or "undirected_edges" in words:
        return _components(words, graphs)
    solution, limit = solution_of(words["solution"]), words["max_supersteps"]
    effect, key_step = effect_of(words["step"]), key_step_of(words["step"])
    if effect is None and key_step is None:
        raise UnknownWord(f"found the step {words['step']!r}")
    bench = Bench()

    def again(record: list[Any]) -> list[list[Any]]:
        """A delta counts in Flink even where it changes nothing: so records say how often they have gone round. What
        becomes of the last workset is never a delta there, if it is not itself.
        """
        key, *rest, rounds = record
        if effect is not None:
            return [[key, *map(effect, rest), rounds + 1]]
        assert key_step is not None
        is_over = key_step and rounds + 1 == limit
        return [] if is_over else [[key + key_step, *rest, rounds + 1]]

    def step(loop: DataStream) -> DataStream:
        bench.watch(loop)
        return loop.flat_map(again)

    counted = [[*each, 0] for each in solution]
    changed = bench.stream(counted).delta_iterate(step, key=0, improve=_newer, max_rounds=limit)
    course = bench.course(changed)
    found = sorted(record[:-1] for record in course.result)
    once = sorted({each[0]: each for each in solution}.values())
    is_told = words.get("expected") == "solution unchanged"
    return {
        "expected": ("solution unchanged" if found == once else found) if is_told else found,
        "expected_keys": [key for key, *_ in found],
        "expected_supersteps": course.supersteps,
        "expected_updates_per_superstep": [course.worksets[1 + each] for each in range(course.supersteps)]
        if key_step
        else course.updates,
    }


def _newer(_known: Any, candidate: Any) -> Any:
    return candidate


def _components(words: Words, graphs: Graphs) -> Found:
    """Label propagation. `converged_when` looks at what a superstep has changed, before the next one works on it."""
    graph = graphs.of(words) if "graph" in words else words
    bench = Bench()
    edges = _edges(bench, graph)
    is_converged = formula(words["converged_when"]) if "converged_when" in words else None

    def unless_converged(number: int, records: list[Any], _static: list[Any]) -> list[Any]:
        assert is_converged is not None
        return [] if number > 1 and is_converged(len(records)) else records

    def step(loop: DataStream) -> Any:
        work = loop if is_converged is None else with_static(loop, bench.stream([]), unless_converged)
        bench.watch(loop, work)
        return with_static(work, edges, _to_neighbours, first)

    vertices = bench.stream([(each, each) for each in graph["vertices"]])
    limit = words["max_supersteps"]
    course = bench.course(vertices.delta_iterate(step, key=0, improve=_smaller, max_rounds=limit))
    return _of_components(course, course.updates)


def _edges(bench: Bench, graph: Words) -> DataStream:
    edges = graph["undirected_edges"]
    return bench.stream([*((a, b) for a, b in edges), *((b, a) for a, b in edges)])


def _to_neighbours(_number: int, records: list[Any], edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(neighbour, component) for _, component in records for _, neighbour in edges]


def _smaller(known: tuple[int, int], candidate: tuple[int, int]) -> tuple[int, int] | None:
    return candidate if candidate[1] < known[1] else None


def _of_components(course: Course, updates: list[int]) -> Found:
    return {
        "expected_component": {str(vertex): component for vertex, component in course.result},
        "expected_components": len({component for _, component in course.result}),
        "expected_supersteps": course.supersteps,
        "expected_updates_per_superstep": updates,
    }
