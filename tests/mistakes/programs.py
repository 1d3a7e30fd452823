"""Twenty programs with one mistake each. Every one would run to its end if the mistake were mended.

A program is built on an environment that it is given; output goes to a folder of its own. `names` are what the error
must name (the operator, or the argument), `remedies` what it must say to do, one of them at least.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy import (
    Collector,
    Count,
    FileSink,
    KeyedOperator,
    StreamEnvironment,
    ValueState,
)

Build = Callable[[StreamEnvironment, Path], None]


@dataclass(frozen=True, slots=True)
class Mistake:
    """`build(env, folder)` writes the program down; it may raise, as the user's own line would."""

    name: str
    build: Build
    names: tuple[str, ...]
    remedies: tuple[str, ...]


MISTAKES: list[Mistake] = []


def mistake(name: str, *, names: tuple[str, ...], remedies: tuple[str, ...]) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        MISTAKES.append(Mistake(name, build, names, remedies))
        return build

    return add


ORIGINS = ("JFK", "EWR", "LGA")


def flights() -> list[dict[str, Any]]:
    return [{"origin": origin, "delay": float(delay)} for delay in range(40) for origin in ORIGINS]


class Worst(KeyedOperator):
    """The README's operator."""

    worst = ValueState(float, default=0.0)

    def process(self, flight: Any, out: Collector) -> None:
        if flight["delay"] > self.worst.value():
            self.worst.update(flight["delay"])
            out.collect((self.key, flight["delay"]))


def _parquet(path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(flights()), path)
    return str(path)


@mistake("wrong column", names=("key_by", "'orgin'", "delay"), remedies=("did you mean 'origin'",))
def wrong_column(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_parquet(_parquet(folder / "flights.parquet"), name="flights")
    stream.key_by("orgin").process(Worst, name="worst").collect(name="out")


class Misspelt(Worst):
    def process(self, flight: Any, out: Collector) -> None:
        out.collect((self.key, flight["delya"]))


@mistake("typo in a key", names=("'delya'", "'worst'"), remedies=("origin, delay",))
def typo_in_a_key(env: StreamEnvironment, folder: Path) -> None:
    env.from_collection(flights(), name="flights").key_by("origin").process(Misspelt, name="worst").collect(name="out")


class Locked(Worst):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@mistake("unpicklable", names=("'worst'", "lock"), remedies=("open()",))
def unpicklable(env: StreamEnvironment, folder: Path) -> None:
    env.from_collection(flights(), name="flights").key_by("origin").process(Locked(), name="worst").collect(name="out")


@mistake("lambda with an open file", names=("'tag'", "file"), remedies=("open()",))
def lambda_with_an_open_file(env: StreamEnvironment, folder: Path) -> None:
    with (folder / "seen.txt").open("w") as file:
        env.from_collection(flights(), name="flights").map(lambda flight: file.write(str(flight)), name="tag").collect(
            name="out"
        )


@mistake("negative parallelism", names=("parallelism", "'worst'", "-2"), remedies=("at least 1",))
def negative_parallelism(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights").key_by("origin")
    stream.process(Worst, name="worst", parallelism=-2).collect(name="out")


@mistake("unhashable key", names=("'worst'", "list"), remedies=("tuple", "wanted an int, str"))
def unhashable_key(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights")
    stream.key_by(lambda flight: [flight["origin"]]).process(Worst, name="worst").collect(name="out")


def _square_root(number: int) -> float:
    return float((17 - number) ** 0.5) / (17 - number)


@mistake("generator raising", names=("'numbers'", "ZeroDivisionError"), remedies=("record 17", "_square_root(17)"))
def generator_raising(env: StreamEnvironment, folder: Path) -> None:
    env.generate(_square_root, 40, name="numbers", parallelism=1).collect(name="out")


@mistake("schemas that differ", names=("'out'", "'delay'"), remedies=("wanted",))
def schemas_that_differ(env: StreamEnvironment, folder: Path) -> None:
    first = env.from_collection(flights(), name="flights")
    second = env.from_collection([{"origin": "SFO", "delay": "much"}] * 5, name="others")
    first.union(second).sink_to(FileSink(str(folder / "out")), name="out", parallelism=1)


@mistake("missing folder", names=("'flights'", "nowhere"), remedies=("correct the path",))
def missing_folder(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_parquet(str(folder / "nowhere"), name="flights")
    stream.key_by("origin").process(Worst, name="worst").collect(name="out")


@mistake("unwritable output", names=("'out'", "taken"), remedies=("folder",))
def unwritable_output(env: StreamEnvironment, folder: Path) -> None:
    (folder / "taken").write_text("a file, where the sink wants a folder")
    stream = env.from_collection(flights(), name="flights")
    stream.sink_to(FileSink(str(folder / "taken" / "out")), name="out")


@mistake("same name twice", names=("'worst'",), remedies=("unique",))
def same_name_twice(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights").key_by("origin")
    stream.process(Worst, name="worst").collect(name="out")
    stream.process(Worst, name="worst").collect(name="out-2")


class Above(Worst):
    def __init__(self, threshold: float) -> None:
        self.threshold = threshold


@mistake("missing constructor arguments", names=("Above", "threshold"), remedies=("give an instance",))
def missing_constructor_arguments(env: StreamEnvironment, folder: Path) -> None:
    env.from_collection(flights(), name="flights").key_by("origin").process(Above, name="worst").collect(name="out")


class Length(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(len(record[1]))


@mistake("huge record", names=("'blow-up'", "67108864"), remedies=("at most", "smaller", "limit"))
def huge_record(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(range(6), name="numbers").map(lambda n: (n, b"x" * 70_000_000), name="blow-up")
    stream.key_by(0).process(Length, name="length", parallelism=2).collect(name="out")


@mistake("None key", names=("'worst'", "None"), remedies=("every record needs a key",))
def none_key(env: StreamEnvironment, folder: Path) -> None:
    records = [*flights(), {"origin": None, "delay": 1.0}]
    env.from_collection(records, name="flights").key_by("origin").process(Worst, name="worst").collect(name="out")


@mistake("mixed keys", names=("'counts'", "'origin'"), remedies=("wanted",))
def mixed_keys(env: StreamEnvironment, folder: Path) -> None:
    records = [*flights(), {"origin": 17, "delay": 1.0}]
    env.from_collection(records, name="flights").key_by("origin").aggregate(flights=Count(), name="counts").collect(
        name="out"
    )


def _within_itself(flight: Any) -> list[Any]:
    trip: list[Any] = [flight["origin"]]
    trip.append(trip)
    return trip


@mistake("recursion", names=("'trips'",), remedies=("contains itself", "nested deeper"))
def recursion(env: StreamEnvironment, folder: Path) -> None:
    env.from_collection(flights(), name="flights").map(_within_itself, name="trips").collect(name="out")


class Importing(Worst):
    def open(self) -> None:
        import a_library_that_only_the_driver_has  # type: ignore[import-not-found]  # noqa: F401


@mistake("missing import on the worker", names=("'worst'", "a_library_that_only_the_driver_has"), remedies=("install",))
def missing_import_on_the_worker(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights").key_by("origin")
    stream.process(Importing, name="worst").collect(name="out")


async def _look_up(flight: Any) -> Any:
    return flight


class Unawaited(Worst):
    async def process(self, flight: Any, out: Collector) -> None:  # type: ignore[override]
        out.collect(_look_up(flight))


@mistake("coroutine", names=("'worst'", "Unawaited", "_look_up", "programs.py:"), remedies=("write `await` before it",))
def coroutine(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights").key_by("origin")
    stream.process(Unawaited, name="worst").collect(name="out")


class Yielding(Worst):
    def process(self, flight: Any, out: Collector) -> Iterator[Any]:  # type: ignore[override]
        yield (self.key, flight["delay"])


@mistake("generator", names=("Yielding", "process"), remedies=("out.collect",))
def generator(env: StreamEnvironment, folder: Path) -> None:
    stream = env.from_collection(flights(), name="flights").key_by("origin")
    stream.process(Yielding, name="worst").collect(name="out")


class Wrong(Worst):
    def process(self, flight: Any, out: Collector) -> None:
        self.worst.update("much")  # type: ignore[arg-type]
        out.collect((self.key, flight["delay"]))


@mistake("wrong value type", names=("'worst'", "float", "str"), remedies=("wanted",))
def wrong_value_type(env: StreamEnvironment, folder: Path) -> None:
    env.from_collection(flights(), name="flights").key_by("origin").process(Wrong, name="worst").collect(name="out")
