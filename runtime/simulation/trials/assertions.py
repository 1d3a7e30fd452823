"""assert_exactly_once: a job of yours commits the same, whatever happens to its cluster.

    def build():
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
        env.from_collection(orders).key_by("customer").process(Totals).collect(name="totals")
        return env

    def test_totals_survive():
        assert_exactly_once(build)

Each history is a whole cluster on virtual time, with other faults and other timing. What the job has committed at its
end is compared, as a multiset, with what it commits when nothing goes wrong; the simulator's own oracles count too. The
first history that goes wrong is shrunk and shown in the AssertionError.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from ....actors.flow.changelog import Changelog
from ....messages import JobStatus
from ....messages.counted import counted
from ....messages.known_names import known_arguments
from ...api.environment import StreamEnvironment
from ...oracles import Violation, at_least_once, exactly_once, nothing_extra
from ..histories.actions import ClientAction
from ..world.faults import Fault, RottenFile
from ..world.network import NetworkOptions
from .blocking_calls import WHAT_BLOCKS, WHAT_TO_DO
from .budget import BUDGET
from .checked_options import check_expected, check_options, check_that_some_happened, environment_of
from .committed_output import Output
from .diagnosis import Diagnosis, output_difference
from .failure_report import (
    WHAT_CHANGES,
    Call,
    failure_report,
    likely,
    other_process_report,
    unrepeatable_report,
)
from .fault_shrinking import shrink
from .hash_seeds import HashSeeds
from .inputs import Inputs, inputs_of
from .job_trial import JobTrial, Unfit
from .rounding import ROUNDING, differ_by_rounding
from .tried import Tried
from .unordered_calls import unordered_calls

__all__ = ["Survived", "TrialOptions", "assert_at_least_once", "assert_exactly_once"]

Job: TypeAlias = StreamEnvironment | Callable[[], StreamEnvironment]
Records: TypeAlias = Iterable[Any] | Mapping[str, Iterable[Any]]
Expected: TypeAlias = Records | Callable[[Inputs], Records]
Oracle: TypeAlias = Callable[[Iterable[Any], Iterable[Any], Changelog | None], Violation | None]


class TrialOptions(TypedDict, total=False):
    """What both assertions take beside the job."""

    expected: Expected | None
    """Of the only sink, or by the sinks' names. Usually what the job commits in a run without faults.

    Or a function that computes it from the records that the sources emit: a dictionary of lists, by the source's name.
    """
    histories: int | None
    """Usually as pytest's option --simulate-seeds says, or 100."""
    minutes: float | None
    """In place of a number: as many histories as fit into this real time, and at least one. Usually as pytest's option
    --simulate-minutes says.
    """
    first_seed: int | None
    """Usually 0. The option --simulate-seed goes before both."""
    faults: Sequence[Fault] | None
    """The same in each history, instead of random ones; then without savepoints, unless `actions` are given."""
    actions: Sequence[ClientAction] | None
    """Rescale(at_ms, parallelism): the same in each history, instead of random ones. Usually in three of ten."""
    sink: str | None
    """Compare only this one; without it and `expected` side outputs are compared, too, that no stream reads."""
    outside: Mapping[str, Callable[[], Iterable[Any]]]
    """More to compare, by a name of your own: what the job has left outside, as a function that reads it at the end of
    each history, in its world. So the effects of a FakeService are compared, or files that an operator writes itself.
    """
    task_managers: int
    """Usually 2."""
    slots_per_task_manager: int
    """Usually 1."""
    network: NetworkOptions
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_timeout_ms: int
    cancel_timeout_ms: int
    config: Mapping[str, str]


_SEEDS = "histories=... says how many, and first_seed=... with which number they begin"
_TIME = "minutes=... says how long histories are run, in real time"
_takes_options = known_arguments(
    also=TrialOptions.__annotations__,
    elsewhere=dict.fromkeys(("seed", "seeds", "runs", "examples", "n"), _SEEDS)
    | dict.fromkeys(("seconds", "duration", "deadline", "timeout", "time"), _TIME),
)


@dataclass(slots=True)
class Survived:
    """All histories of one assertion, in none of which anything was wrong."""

    histories: int = 0
    minutes: float | None = None
    """The real time that was given for them, if it was."""
    faults: Counter[str] = field(default_factory=Counter)
    """Those that happened, by kind."""
    recoveries: int = 0
    checkpoints: int = 0
    rescales: int = 0
    """How often a job went on from a savepoint, in another parallelism where it could."""
    kept: list[str] = field(default_factory=list)
    """What was not rescaled, and why."""
    empty: list[str] = field(default_factory=list)
    """Sinks that get no record even without faults, so that nothing was compared of them."""
    left_out: list[str] = field(default_factory=list)
    """Of these, the parallelisms at which the job commits something else without any fault."""
    in_batches: str = ""
    """How the output differs where many records come at a time, if it does: some of our own operators fire once for a
    batch, too, as columnar windows do that late records change. Then batches end at the same records in each history.
    """
    not_compared: str = ""
    """Why the output was not compared with that of a process with another hash seed, if it was not."""
    blocking: list[str] = field(default_factory=list)
    """Calls in coroutines that block the event loop. Nothing shows of it here, where no virtual time passes."""
    doubtful: list[str] = field(default_factory=list)
    """What functions do that gives other results from run to run, or outlives failures: they read the real clock or
    random numbers, change variables of the program, open files. It may be harmless; in these histories nothing shows.
    """
    virtual_ms: float = 0.0

    def __str__(self) -> str:
        return (
            f"survived {self._ran()}: {counted(self.faults.total(), 'fault')}, {counted(self.recoveries, 'recovery')}, "
            f"{counted(self.checkpoints, 'checkpoint')}, {counted(self.rescales, 'rescale')}, "
            f"{self.virtual_ms / 3_600_000:.1f} hours of virtual time{self._left()}"
        )

    def _ran(self) -> str:
        ran = counted(self.histories, "history")
        return ran if self.minutes is None else f"{ran}, all that fitted into {self.minutes:g} minutes"

    def _left(self) -> str:
        """What is to be known beside, if there is anything."""
        parts = {
            "nothing comes to sink": ", ".join(map(repr, self.empty)),
            "its output depends on where batches end (.in_batches):": f"{self.in_batches:.200}",
            "its output depends on the parallelism (.left_out):": "".join(self.left_out[:1])[:200],
            "not compared with a process of another hash seed and time zone (.not_compared):": self.not_compared[:200],
            "not found wrong, but doubtful (.doubtful):": "".join(self.doubtful[:1]),
            f"{WHAT_BLOCKS} (.blocking):": "".join(self.blocking[:1]),
        }
        return "".join(f"; {what} {found}" for what, found in parts.items() if found)

    def add(self, tried: Tried) -> None:
        """Count one history more."""
        self.histories += 1
        self.faults.update(tried.happened)
        self.recoveries += tried.recoveries
        self.checkpoints += tried.checkpoints
        self.rescales += tried.rescales
        self.kept += [told for told in tried.kept if told not in self.kept]
        self.virtual_ms += tried.virtual_ms


@_takes_options
def assert_exactly_once(job: Job, **options: Unpack[TrialOptions]) -> Survived:
    """What the job commits without faults it commits with them: each record once, and nothing else.

    `job`: an environment, or a function that returns one; bounded, and with checkpoints. Its restart strategy is
    replaced by a patient one, and sources without a rate are slowed down, so that it lasts for some checkpoints.
    Raises Unfit for a job that cannot be tried, and AssertionError for the first history that goes wrong.
    """
    __tracebackhide__ = True
    return _Assertion("assert_exactly_once", job, options, exactly_once, nothing_extra).run()


@_takes_options
def assert_at_least_once(job: Job, **options: Unpack[TrialOptions]) -> Survived:
    """What the job commits without faults it commits with them, perhaps repeatedly; and no other record.

    All else as for `assert_exactly_once`.
    """
    __tracebackhide__ = True
    return _Assertion("assert_at_least_once", job, options, at_least_once, None).run()


class _Assertion:
    """One call. `unfinished`: what holds of the output of a job that had to give up."""

    def __init__(self, name: str, job: Job, options: TrialOptions, finished: Oracle, unfinished: Oracle | None) -> None:
        __tracebackhide__ = True
        given = dict(options)
        check_options(name, given)
        self._call = Call(name, _name_of(job), {key: each for key, each in given.items() if key not in _NOT_REPEATED})
        self._finished, self._unfinished = finished, unfinished
        expected, sink = given.pop("expected", None), given.pop("sink", None)
        faults = cast("Sequence[Fault] | None", given.pop("faults", None))
        self._faults = None if faults is None else tuple(sorted(faults, key=lambda fault: fault.at_ms))
        self._actions = _actions(cast("Sequence[ClientAction] | None", given.pop("actions", None)), faults)
        histories, first_seed = cast(Any, given.pop("histories", None)), cast(Any, given.pop("first_seed", None))
        self._minutes = BUDGET.minutes_for(histories, cast(Any, given.pop("minutes", None)))
        self._seeds: Iterable[int] = (
            BUDGET.seeds(histories, first_seed)
            if self._minutes is None
            else BUDGET.seeds_within(self._minutes, first_seed)
        )
        env = environment_of(name, job, _name_of(job))
        self._trial = JobTrial(env, with_sides=expected is None and sink is None, **cast(Any, given))
        self._unordered = unordered_calls(env.graph.nodes)
        records = cast("Records | None", expected(inputs_of(env)) if callable(expected) else expected)
        check_expected(records, self._trial.reference.output)
        self._wanted = _wanted(self._trial.reference.output, records, cast("str | None", sink))

    def run(self) -> Survived:
        __tracebackhide__ = True  # of pytest: a report follows the line of the test at once
        without_faults = next(self._judge(JobStatus.FINISHED.value, self._trial.reference.output), None)
        if without_faults is not None:
            raise AssertionError(self._wrong_without_faults(without_faults))
        hash_seeds = HashSeeds(self._trial.calm_run(), self._trial.reference.output, self._wanted)
        survived = Survived(minutes=self._minutes)
        survived.empty += [name for name, records in self._wanted.items() if not records]
        survived.in_batches = self._trial.in_batches(self._judge)
        survived.blocking += self._trial.blocking
        survived.doubtful += [*(self._trial.timers.told if survived.in_batches else ()), *self._trial.doubtful]
        if survived.blocking:
            warnings.warn("\n".join([f"{WHAT_BLOCKS}:", *survived.blocking, WHAT_TO_DO]), RuntimeWarning, stacklevel=4)
        for number, seed in enumerate(self._seeds):
            if number == _HISTORIES_BEFORE_OTHER_PROCESSES:
                self._compare_with(hash_seeds)
            BUDGET.ran += 1
            tried = self._try(seed, self._faults_of(seed), self._actions_of(seed))
            if tried.violations:
                BUDGET.violations += 1
                raise AssertionError(self._report(tried)) from tried.crash
            survived.add(tried)
        if survived.rescales:
            survived.kept += [*self._trial.keeping, *self._trial.left_out]
            survived.left_out += self._trial.left_out
        self._compare_with(hash_seeds)
        check_that_some_happened(self._faults, survived.faults.total(), self._trial.reference.virtual_ms)
        survived.not_compared = hash_seeds.not_compared
        if doubts := _doubts(survived):
            warnings.warn(doubts, RuntimeWarning, stacklevel=4)
        return survived

    def _compare_with(self, hash_seeds: HashSeeds) -> None:
        __tracebackhide__ = True
        if (problem := hash_seeds.problem) is not None:
            BUDGET.violations += 1
            raise AssertionError(other_process_report(self._call, problem, self._trial.doubtful))

    def _wrong_without_faults(self, violation: Violation) -> str:
        """A job that is another one in each run is called so."""
        told = self._other_calm_output()
        if told is None:
            return "\n".join([f"without any fault: {violation}", *likely(self._trial.timers.told)])
        return "\n".join(
            [f"unrepeatable: two runs without faults gave two different outputs: {told}", "", *WHAT_CHANGES]
        )

    def _other_calm_output(self) -> str | None:
        """How a run without faults differs now from the first one; None if it does not."""
        return output_difference(self._trial.reference.output, self._trial.calm().output)

    def _faults_of(self, seed: int) -> tuple[Fault, ...]:
        """No file rots where the job has to go on from a savepoint: it may rot too, and then nothing is left."""
        if self._faults is not None:
            return self._faults
        faults = self._trial.faults_of(seed)
        if not self._actions_of(seed):
            return faults
        return tuple(fault for fault in faults if not isinstance(fault, RottenFile))

    def _actions_of(self, seed: int) -> tuple[ClientAction, ...]:
        return self._trial.actions_of(seed) if self._actions is None else self._actions

    def _report(self, failed: Tried) -> str:
        """Run again first: what does not fail again the same way cannot be shrunk."""
        again, calm = self._try(failed.seed, failed.faults, failed.actions), self._try(failed.seed, (), ())
        diagnosis = Diagnosis(failed, again, calm)
        if not diagnosis.is_repeatable:
            return unrepeatable_report(self._call, diagnosis, self._causes_of(failed, with_timers=False))
        if not diagnosis.needs_faults and (told := self._other_calm_output()) is not None:
            return unrepeatable_report(self._call, diagnosis, self._causes_of(failed, with_timers=False), told)
        kept = [*self._trial.keeping, *self._trial.left_out]
        shrunk, runs = shrink(failed, self._try, self._trial.seeds_in_other_orders())
        causes = self._causes_of(shrunk) or self._causes_of(failed)
        return failure_report(self._call, diagnosis, shrunk, runs, kept, causes, self._unordered)

    def _causes_of(self, failed: Tried, *, with_timers: bool = True) -> tuple[str, ...]:
        """`with_timers`: whether batches may end elsewhere than in the run that it is compared with."""
        rounding = (ROUNDING,) if differ_by_rounding(failed.output, self._wanted) else ()
        causes = self._trial.causes(failed, self._judge)
        return (*(causes.found or rounding), *(causes.timers if with_timers else ()))

    def _try(self, seed: int, faults: tuple[Fault, ...], actions: tuple[ClientAction, ...]) -> Tried:
        return self._trial.run(seed, faults, actions, self._judge)

    def _judge(self, status: str, output: Output) -> Iterator[Violation]:
        """Of a job that had to give up nobody knows what it has left outside by then."""
        is_finished = status == JobStatus.FINISHED.value
        oracle = self._finished if is_finished else self._unfinished
        if oracle is None:
            return
        for name, wanted in self._wanted.items():
            if not is_finished and name in self._trial.outside:
                continue
            found = output.get(name, [])
            violation = oracle(found, wanted, self._trial.changelog_of(name))
            if violation is not None:
                amounts = f"(found {len(found)}, wanted {len(wanted)})"
                where = self._trial.sides.get(name, f"sink {name!r}")
                yield Violation(violation.oracle, f"{where} has committed {violation.problem} {amounts}")


def _doubts(survived: Survived) -> str:
    """What a test that passes has to say though nobody prints it; empty where there is nothing."""
    told = [f"the job survived, and is not found wrong, but doubtful: {each}" for each in survived.doubtful]
    if survived.in_batches:
        told.append(
            "the job survived, but its output depends on where batches end, so on the pace at which records come:\n"
            f"{survived.in_batches:.300}\nWhat is made of the records alone, as by event time, is the same at each pace"
        )
    return "\n".join(told)


def _actions(actions: Sequence[ClientAction] | None, faults: Sequence[Fault] | None) -> tuple[ClientAction, ...] | None:
    """None for random ones."""
    if actions is None:
        return None if faults is None else ()
    return tuple(sorted(actions, key=lambda action: action.at_ms))


_HISTORIES_BEFORE_OTHER_PROCESSES = 10
"""By then the other processes have had time to answer, and what they find need not wait for the other histories."""

_NOT_REPEATED = ("actions", "faults", "first_seed", "histories", "minutes")
"""Options that a report does not repeat, since it has its own."""


def _name_of(job: Job) -> str:
    return "env" if isinstance(job, StreamEnvironment) else getattr(job, "__name__", "build")


def _wanted(output: Output, expected: Records | None, sink: str | None) -> Mapping[str, list[Any]]:
    """What is to be compared, by sink."""
    if not output:
        raise Unfit(
            "the job commits nothing that can be compared: end it in collect(name=...), to_outlet(name), a FileSink "
            "under sim://, or a sink of your own that writes to a TransactionalLog; or say with outside={'name': "
            "function} how to read what it leaves outside"
        )
    if sink is not None and sink not in output:
        raise Unfit(f"there is no sink {sink!r} that can be compared; there is {', '.join(output)}")
    compared = {sink: output[sink]} if sink is not None else dict(output)
    match expected:
        case None if not any(compared.values()):
            raise Unfit(
                "the job commits no output, so there is nothing to compare: give it some records. If it has some: does "
                "a timer wait for time.time()? Simulated time is another one: take self.processing_time(). Does a sink "
                "pass over what its commit raises, or an operator over what its own code does (`except: pass`)?"
            )
        case None:
            return compared
        case Mapping():
            return {name: list(records) for name, records in expected.items()}
        case _ if len(compared) > 1:
            raise Unfit(f"expected: wanted a dictionary by sink, for there are several: {', '.join(compared)}")
        case _:
            return {name: list(expected) for name in compared}
