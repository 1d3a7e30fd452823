"""assert_exactly_once and assert_at_least_once: what they compare, what they refuse, and what they say."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    END,
    Count,
    FileSink,
    KeyedOperator,
    Operator,
    Source,
    StreamEnvironment,
    bounded_out_of_orderness,
    fixed_delay,
    tumbling,
)
from understudy.runtime.clusters.cluster_settings import ClusterSettings
from understudy.runtime.simulation.trials.assertions import TrialOptions
from understudy.runtime.simulation.trials.budget import Budget
from understudy.testing import (
    FailingOperator,
    FailingStorage,
    KillProcess,
    SimulatedCluster,
    TransactionalLog,
    TransactionError,
    Unfit,
    assert_at_least_once,
    assert_exactly_once,
)

pytestmark = pytest.mark.every_run

KILL = KillProcess(at_ms=2_500, who=0)


def _env(**settings: Any) -> StreamEnvironment:
    return StreamEnvironment(**{"parallelism": 1, "checkpoint_interval_ms": 1_000, **settings})


def _numbers(**settings: Any) -> StreamEnvironment:
    env = _env(**settings)
    env.from_collection(range(12)).map(lambda number: number * 10).collect(name="out")
    return env


class Twice(KeyedOperator):
    """What it has seen is in an attribute, so after a restore it lets some records through again."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def process(self, record: int, out: Any) -> None:
        if record not in self.seen:
            self.seen.add(record)
            out.collect(record)


def _twice() -> StreamEnvironment:
    env = _env()
    env.from_collection([number % 6 for number in range(12)]).key_by(lambda number: number).process(Twice).collect(
        name="out"
    )
    return env


# ---- what is compared


def test_an_environment_will_do_and_is_left_as_it_was() -> None:
    env = _numbers(restart_strategy=fixed_delay(1))
    before = (env.restart, env.checkpoints)
    assert assert_exactly_once(env, histories=3).histories == 3
    assert (env.restart, env.checkpoints) == before


def test_what_is_expected_can_be_said() -> None:
    assert_exactly_once(_numbers, expected=[number * 10 for number in range(12)], histories=2)
    assert_exactly_once(_numbers, expected={"out": [number * 10 for number in range(12)]}, histories=2)
    with pytest.raises(AssertionError, match=r"^without any fault: exactly-once: sink 'out' .* 1 record too many: 110"):
        assert_exactly_once(_numbers, expected=[number * 10 for number in range(11)])


def test_what_is_expected_may_be_computed_from_the_inputs() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        rows = env.generate(lambda start, rows: pa.record_batch({"n": range(start, start + rows)}), 5, name="rows")
        both = env.from_collection([10, 20], name="tens").union(env.generate(abs, 3, name="small"))
        both.union(rows.map(lambda row: row["n"] + 100)).collect(name="out")
        return env

    def computed(inputs: Mapping[str, list[Any]]) -> list[int]:
        assert inputs == {"rows": [{"n": n} for n in range(5)], "tens": [10, 20], "small": [0, 1, 2]}
        return [*inputs["tens"], *inputs["small"], *(row["n"] + 100 for row in inputs["rows"])]

    assert_exactly_once(build, expected=computed, histories=2)
    with pytest.raises(AssertionError, match="without any fault: exactly-once"):
        assert_exactly_once(build, expected=lambda inputs: {"out": inputs["tens"]})


def test_the_records_of_another_source_are_not_known_before_it_has_run() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        env.from_source(_Own, name="own").collect(name="out")
        return env

    with pytest.raises(Unfit, match="source 'own' is a _Own: give the records themselves"):
        assert_exactly_once(build, expected=lambda inputs: inputs["own"])


class _Own(Source):
    """Nothing."""

    def poll(self) -> Any:
        return END

    def offset(self) -> None:
        """There is none."""

    def seek(self, offset: Any) -> None:
        """There is none."""


def test_all_sinks_are_compared_or_the_one_that_is_named() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        numbers = env.from_collection([number % 6 for number in range(12)])
        numbers.collect(name="right")
        numbers.key_by(lambda number: number).process(Twice).collect(name="wrong")
        return env

    assert_exactly_once(build, sink="right", faults=[KILL], histories=5)
    with pytest.raises(AssertionError, match=r"^exactly-once: sink 'wrong' "):
        assert_exactly_once(build, faults=[KILL], histories=5)


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_files_on_the_simulated_disk_are_compared(format: str) -> None:
    def build() -> StreamEnvironment:
        env = _env()
        rows = [{"number": number, "word": "x" * number} for number in range(1, 8)]
        env.from_collection(rows).sink_to(FileSink("sim://out", format), name="files")
        return env

    rows = [{"number": number, "word": "x" * number} for number in range(1, 8)]
    assert_exactly_once(build, expected={"files": rows}, histories=4)


def test_random_faults_happen_and_time_goes_by() -> None:
    survived = assert_exactly_once(_numbers, histories=20, task_managers=1)
    assert survived.faults.total() > 10
    assert survived.recoveries > 5
    assert survived.checkpoints > 100
    assert str(survived).startswith("survived 20 histories: ")


# ---- at least once


class Repeating(Operator):
    """A sink that writes at once, and so writes again what is replayed."""

    def process_batch(self, batch: Any, out: Any) -> None:
        TransactionalLog("out").write(batch)


def _repeating() -> StreamEnvironment:
    env = _env()
    env.from_collection(range(12)).sink_to(Repeating)
    return env


def test_repetition_is_at_least_once_and_not_exactly_once() -> None:
    assert_at_least_once(_repeating, histories=10)
    with pytest.raises(AssertionError, match=r"^exactly-once: sink 'out' "):
        assert_exactly_once(_repeating, histories=10)


def test_loss_is_not_at_least_once() -> None:
    class Losing(Repeating):
        def process_batch(self, batch: Any, out: Any) -> None:
            if not self.context.restored:
                super().process_batch(batch, out)

    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(12)).sink_to(Losing)
        return env

    with pytest.raises(AssertionError, match=r"^at-least-once: .* records? lost") as caught:
        assert_at_least_once(build, faults=[KILL], histories=5)
    assert "assert_at_least_once(build, first_seed=0, histories=1)" in str(caught.value)


# ---- what is said


@pytest.mark.drawn
def test_a_failure_can_be_run_again_from_its_text() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_twice, first_seed=0, histories=100, task_managers=1)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    again = next(line for line in lines if line.startswith("assert_exactly_once(_twice, task_managers=1"))
    with pytest.raises(AssertionError) as repeated:
        eval(again)
    assert str(repeated.value) == str(caught.value)
    start = lines.index("faults = (")
    program = "\n".join(lines[start - 2 : lines.index(")", start) + 2])
    with pytest.raises(AssertionError, match=r"^exactly-once"):
        exec(program, {"assert_exactly_once": assert_exactly_once, "_twice": _twice})


def test_a_job_that_depends_on_chance_is_told_from_one_that_breaks() -> None:
    class Clocked(Operator):
        def process_batch(self, batch: Any, out: Any) -> None:
            out.collect(self.context.clock.now_ms())

    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(5)).process(Clocked).collect(name="out")
        return env

    with pytest.raises(AssertionError, match=r"(?s)0 recoveries: order\. .* No\n?.*failure is needed"):
        assert_exactly_once(build, histories=20)


@pytest.mark.drawn
def test_a_job_that_cannot_be_restored_does_not_end() -> None:
    class Unwilling(Operator):
        def open(self) -> None:
            if self.context.restored:
                raise RuntimeError("I will not")

        def process_batch(self, batch: Any, out: Any) -> None:
            out.emit(batch)

    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(12)).process(Unwilling).collect(name="out")
        return env

    with pytest.raises(AssertionError, match=r"(?s)^liveness: .*its last failure: .*RuntimeError: I will not"):
        assert_exactly_once(build, faults=[KILL], histories=1)


# ---- what is refused


def _failing() -> StreamEnvironment:
    env = _env()
    env.from_collection(range(3)).map(lambda number: 1 // number).collect(name="out")
    return env


def test_a_job_that_fails_by_itself_is_told_at_once() -> None:
    with pytest.raises(AssertionError, match=r"^without any injected fault: liveness: the job has failed.*ZeroDiv"):
        assert_exactly_once(_failing)


def _without_checkpoints() -> StreamEnvironment:
    return _numbers(checkpoint_interval_ms=None)


def _endless() -> StreamEnvironment:
    env = _env()
    env.generate(lambda index: index).collect(name="out")
    return env


def _watching() -> StreamEnvironment:
    env = _env()
    env.from_files(str(Path(__file__).parent / "*.py"), "text", watch_ms=100, name="lines").collect(name="out")
    return env


def _real_files() -> StreamEnvironment:
    env = _env()
    env.from_collection(range(3)).map(lambda n: {"n": n}).sink_to(FileSink(str(Path("out")), "jsonl"))
    return env


def _nothing_to_see() -> StreamEnvironment:
    env = _env()
    env.from_collection(range(3)).print()
    return env


def _nothing_at_all() -> StreamEnvironment:
    env = _env()
    env.from_collection([]).collect(name="out")
    return env


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (_without_checkpoints, "give its environment checkpoint_interval_ms"),
        (
            _endless,
            r"source 'generator-source-1' never ends.*: say how many records it makes, as in env\.generate\(make",
        ),
        (_watching, r"source 'lines' never ends, .*: leave watch_ms out in the test, .*or read env\.from_collection\("),
        (_real_files, "begins with sim://"),
        (_nothing_to_see, "nothing that can be compared"),
        (_nothing_at_all, "give it some records"),
        (_nothing_at_all, r"does a timer wait for time\.time\(\)\? .*: take self\.processing_time\(\)"),
    ],
)
def test_a_job_that_cannot_be_tried_is_refused(build: Callable[[], StreamEnvironment], problem: str) -> None:
    with pytest.raises(Unfit, match=problem):
        assert_exactly_once(build)


def test_an_unknown_sink_is_refused() -> None:
    with pytest.raises(Unfit, match="there is no sink 'outt' that can be compared; there is out"):
        assert_exactly_once(_numbers, sink="outt")


def test_the_options_are_those_of_the_cluster() -> None:
    settings = set(inspect.signature(ClusterSettings).parameters) - {"host", "name_lease_ms"}
    settings -= {"web_port", "web_host", "web_token", "history_dir"}  # nobody looks at a trial
    assert settings <= set(TrialOptions.__annotations__)


# ---- seeds


def test_the_test_goes_before_the_number_and_a_single_seed_before_everything() -> None:
    assert Budget().seeds() == range(100)
    assert Budget(histories=7).seeds(first_seed=3) == range(3, 10)
    assert Budget(histories=7).seeds(histories=2) == range(2)
    assert Budget(histories=7, only_seed=5).seeds(histories=2, first_seed=1) == range(5, 6)
    assert Budget().minutes_for() is None
    assert Budget(minutes=3).minutes_for() == 3
    assert Budget(minutes=3).minutes_for(minutes=2) == 2
    assert Budget(minutes=3).minutes_for(histories=2) is None
    assert Budget(minutes=3, only_seed=5).minutes_for() is None


def test_as_many_seeds_as_fit_into_a_time_and_one_at_least() -> None:
    now_s = itertools.count(1_000, 10)
    assert list(Budget().seeds_within(1, 3, lambda: next(now_s))) == [3, 4, 5, 6, 7, 8]
    assert list(Budget().seeds_within(0.001, clock=lambda: next(now_s))) == [0]


def test_the_result_says_how_many_fitted_into_the_time() -> None:
    survived = assert_exactly_once(_numbers, minutes=0.0001)
    assert survived.histories == 1
    assert str(survived).startswith("survived 1 history, all that fitted into 0.0001 minutes: ")


# ---- the transactional log


def test_a_transaction_goes_one_way_and_each_step_may_be_repeated() -> None:
    with SimulatedCluster():
        log = TransactionalLog("orders")
        transaction = log.begin()
        log.append(transaction, [1, 2])
        with pytest.raises(TransactionError, match="cannot commit transaction 'orders-1': it is open, wanted prepared"):
            log.commit(transaction)
        for step in (log.prepare, log.commit):
            assert log.committed() == []
            step(transaction)
        log.commit(transaction)
        assert TransactionalLog("orders").committed() == [1, 2]
        for refused in (log.abort, log.prepare):
            with pytest.raises(TransactionError, match="it is committed"):
                refused(transaction)
        with pytest.raises(TransactionError, match="there is none"):
            log.abort("orders-7")


def test_each_world_has_logs_of_its_own() -> None:
    with SimulatedCluster():
        TransactionalLog().write([1])
    with SimulatedCluster():
        assert TransactionalLog().committed() == []
    with pytest.raises(RuntimeError, match="sim:// is the disk of a simulated cluster"):
        TransactionalLog().committed()


def test_a_fault_can_be_given_by_hand() -> None:
    survived = assert_exactly_once(_numbers, faults=[FailingOperator(3_000), replace(KILL, at_ms=5_000)], histories=3)
    assert survived.faults == {"FailingOperator": 3, "KillProcess": 3}


def test_storage_that_fails_at_the_end_is_given_time_to_be_tidied() -> None:
    end_ms = assert_exactly_once(_numbers, histories=1, faults=()).virtual_ms
    outage = FailingStorage(at_ms=end_ms, for_ms=15_100, probability=1.0)
    assert assert_exactly_once(_numbers, histories=1, faults=[outage]).faults["FailingStorage"] == 1


def test_a_function_that_returns_no_environment_is_told_so() -> None:
    def build() -> Any:
        StreamEnvironment()

    with pytest.raises(Unfit, match=r"build\(\) returned None: does it lack `return env`"):
        assert_exactly_once(build)


class _FillsOneAgain(Operator):
    def __init__(self) -> None:
        self.row: dict[str, int] = {}

    def process_batch(self, batch: Any, out: Any) -> None:
        for number in batch:
            self.row["number"] = number
            out.collect(self.row)


def test_a_record_that_is_filled_again_is_found_though_slow_sources_give_one_at_a_time() -> None:
    env = _env()
    env.from_collection(range(40)).process(_FillsOneAgain, name="fill").collect(name="out")
    told = r"^without any injected fault, with large batches: .* -> fill -> .*_FillsOneAgain has changed a record after"
    with pytest.raises(AssertionError, match=told):
        assert_exactly_once(env, histories=1)


class _InSeconds(KeyedOperator):
    def process(self, record: int, out: Any) -> None:
        self.timers.at_processing_time(self.processing_time() // 1000 + 60)
        out.collect(record)

    def on_timer(self, timer: Any, out: Any) -> None:
        """The order would be cancelled here."""


def test_a_timer_in_seconds_is_warned_of_once_for_all_histories(caplog: pytest.LogCaptureFixture) -> None:
    """What else is logged is silenced: failures are made on purpose."""
    env = _env()
    env.from_collection(range(6)).key_by(lambda number: number % 2).process(_InSeconds).collect(name="out")
    assert_exactly_once(env, histories=2, faults=[KILL])
    (said,) = caplog.messages
    assert "If its time is in seconds, multiply it by 1000" in said


def test_late_records_are_warned_of_once_for_all_histories(caplog: pytest.LogCaptureFixture) -> None:
    env = _env()
    rows = [{"at": 1_000 * (number ^ 1), "key": 0} for number in range(40)]
    stamped = env.from_collection(rows).assign_timestamps("at", bounded_out_of_orderness(0))
    stamped.key_by("key").window(tumbling(seconds=1)).aggregate(n=Count()).map(tuple).collect(name="out")
    assert_exactly_once(env, histories=2, faults=[KILL])
    first, at_the_end = caplog.messages
    assert "has had its first late records: " in first
    assert "late records" in at_the_end


@pytest.mark.parametrize("called", [assert_exactly_once, assert_at_least_once])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": 5}, "has no argument 'timeout': minutes=... says how long histories are run, in real time"),
        ({"seeds": 5}, "has no argument 'seeds': histories=... says how many"),
        ({"task_manager": 3}, "has no argument 'task_manager'; did you mean 'task_managers'?"),
        ({"kills": 3}, "has no argument 'kills'. There are job, expected, histories"),
    ],
)
def test_an_unknown_option_is_refused_with_those_that_there_are(
    called: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=rf"{called.__name__} {re.escape(said)}"):
        called(StreamEnvironment(), **options)
