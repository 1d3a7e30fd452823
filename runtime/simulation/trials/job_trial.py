"""JobTrial: one job of a user's, prepared once and then tried in as many histories as one likes.

The failure-free run comes first. It says what the job commits, and how long it takes; faults begin within that time.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ....actors.flow.changelog import Changelog
from ....actors.job_graph import slots_needed
from ....actors.operators.operator import Operator
from ....messages import JobId, JobStatus, VertexId
from ...api.environment import StreamEnvironment
from ...api.restart import exponential_delay, no_restart
from ...api.translation import Translation, translate
from ..histories.actions import ClientAction
from ..histories.ending import STALLED
from ..world.cluster import STORAGE, SimulatedCluster
from ..world.faults import Fault
from .blocking_calls import BlockingCalls
from .causes import Causes
from .changelogs import OUT_OF_ORDER, changelogs_of
from .committed_output import Outside
from .deleted_timers import DeletedTimers
from .endless_sources import how_to_bound
from .other_interpreter import CalmRun
from .paced_jobs import Pace, PacedJobs
from .pacing import slowed_sources
from .parallelisms import candidates, that_keep_theirs, with_parallelism
from .process_caches import ProcessCaches
from .rescale import Rescale
from .trial_faults import TrialFaults
from .tried import Judge, Translated, Tried, try_once
from .unread_sides import UnreadSides
from .written_outside import written_outside

RECOVERY_MS = 5 * 60_000.0
"""How long a job may take after its last fault, besides the time that it takes without any."""

_LONGEST_MS = 60 * 60_000.0
"""A job that takes longer without faults is taken to hang."""

_CHECKPOINTS = 10
"""A job is to last for about this number of checkpoints; sources without a rate are slowed down to this."""

_LONGEST_INTERVAL_MS = 60_000
"""Checkpoints that are further apart come in this interval."""

_TOLERANCE = 2
"""By this factor it may last longer or shorter."""

_FIRST_GUESS = 30
"""Into how many batches sources divide their records, where they can."""

WITH_SAVEPOINTS = 0.3
"""Share of histories in which the job goes on from a savepoint, in another parallelism where it can."""

_AHEAD = 0.3
"""Share of histories in which one of several sources runs ahead of the others."""
_SEEDS_LOOKED_AT = 100
"""For one in which a source does."""

_LATE = 0.3
"""Share of those in which it does so shortly before its end, when some of its data has ended."""

_CANCELS = 0.3
"""Share of those in which the job is cancelled with its savepoint, and not stopped."""


WhenMade = Callable[[Operator], object]


class Unfit(ValueError):
    """This job cannot be tried as it is; the text says what to change."""


class JobTrial:
    """Raises Unfit for a job that cannot be tried, and AssertionError for one that fails without any fault."""

    def __init__(
        self,
        env: StreamEnvironment,
        *,
        task_managers: int = 2,
        slots_per_task_manager: int = 1,
        outside: Outside = MappingProxyType({}),
        with_sides: bool = False,
        **settings: Any,
    ) -> None:
        """`outside`: more output. `with_sides`: side outputs that nobody reads are output, too. `settings`: more of
        them, for each SimulatedCluster.
        """
        self.outside = _checked_outside(env, outside)
        self._task_managers = task_managers
        self._slots = slots_per_task_manager
        self._settings = {"slot_timeout_ms": 300_000, **settings}
        self._env = env
        self._changelogs = changelogs_of(env.graph.nodes)
        self._was = env.parallelism or task_managers * slots_per_task_manager
        self._paced = PacedJobs(self._as_it_is)
        self._fitting = {self._was: True}
        self._is_uneven = True
        """Whether batches of slowed sources end at other records in each history."""
        self.left_out: list[str] = []
        """Why the job is not rescaled to some parallelisms."""
        self._plain = self._translated(env, 1)
        self._sources = slowed_sources(self._plain)
        self.sides: Mapping[str, str] = {}
        """What is read for the trial alone, in words, by the name of its sink."""
        self.blocking: list[str] = []
        """Calls in coroutines that hold the event loop."""
        self.doubtful: list[str] = []
        """Sentences on calls and changes in the code, which are a likely cause where something goes wrong."""
        self.timers = DeletedTimers()
        __tracebackhide__ = True
        self.reference = self._run_calmly(_checked(env, self._plain), with_sides=with_sides)
        self.hurried = self._run_in_hurry()

    def faults_of(self, seed: int) -> tuple[Fault, ...]:
        """Those of this seed."""
        return TrialFaults(self._task_managers, self.reference.virtual_ms, self._plain.graph.checkpoints).of(seed)

    def actions_of(self, seed: int) -> tuple[ClientAction, ...]:
        """What the job's user does in the history of this seed: in some, goes on from savepoints, rescaled."""
        chance = random.Random(f"savepoints {seed}")
        others = candidates(self._was, self._env.max_parallelism)
        if chance.random() >= WITH_SAVEPOINTS or not others:
            return ()
        within_ms = self.reference.virtual_ms
        times = sorted(round(chance.uniform(0.1, 0.8) * within_ms, 1) for _ in range(chance.choice((1, 1, 2))))
        late = random.Random(f"late savepoints {seed}")
        if late.random() < _LATE:
            times[-1] = round(late.uniform(0.8, 0.97) * within_ms, 1)
        return tuple(Rescale(at_ms, chance.choice(others), cancel=chance.random() < _CANCELS) for at_ms in times)

    def changelog_of(self, name: str) -> Changelog | None:
        """Of what is compared under this name; None if its records are no changes. A log is written by sinks whose
        names need not be its own.
        """
        if name in self._plain.sinks or name in self.outside:
            return self._changelogs.get(name)
        return OUT_OF_ORDER if self._changelogs else None

    @property
    def keeping(self) -> tuple[str, ...]:
        """Which operators keep their parallelism when the job is rescaled, and why."""
        return tuple(that_keep_theirs(self._env))

    def in_batches(self, judge: Judge) -> str:
        """How the output differs where many records come at a time, if it does: from then on batches of histories end
        at the same records.
        """
        found = next(map(str, judge(self.hurried.status, self.hurried.output)), "")
        self._is_uneven = not found
        return found

    def calm(self) -> Tried:
        """The failure-free run, once more."""
        return self._run_at(self._paced.pause_ms)

    def calm_run(self) -> CalmRun:
        """The same, for another interpreter."""
        calm = self._calm(0, 1)
        return CalmRun.of(calm, self.outside, self._task_managers, self._slots, self._settings, _LONGEST_MS)

    def causes(self, failed: Tried, judge: Judge) -> Causes:
        """Run a history that went wrong once more, and look for the user's mistake. If none is seen: run it without
        faults, too, as sources say there what comes next on other offsets.
        """
        causes = Causes()
        causes.look_at_keys(self._env.graph.nodes)
        self.run(failed.seed, failed.faults, failed.actions, judge, causes)
        if not causes.found and (failed.faults or failed.actions):
            causes.begin_again()
            self.run(failed.seed, (), (), judge, causes)
        return causes

    def run(
        self,
        seed: int,
        faults: tuple[Fault, ...],
        actions: tuple[ClientAction, ...],
        judge: Judge,
        causes: Causes | None = None,
    ) -> Tried:
        """One history, judged by the world's own oracles too. Deterministic.

        A parallelism in which the job commits something else even if nothing goes wrong is not taken: the job goes on
        from its savepoint with the one that it had.
        """
        actions = tuple(self._fit(action, judge) for action in actions)
        pace = Pace(self._ahead(seed), self._is_uneven)
        last_fault_ms = max((fault.until_ms for fault in faults), default=0.0)
        limit_ms = last_fault_ms + self.reference.virtual_ms + RECOVERY_MS

        def translated(parallelism: int, number: int) -> Translation:
            return self._paced.job(parallelism, number, pace)

        tried = self._run(
            translated, seed, faults, limit_ms, judge, actions, when_made=causes.look_at if causes else None
        )
        tried.ahead = self._sources[pace.ahead] if pace.ahead is not None else ""
        return tried

    def _ahead(self, seed: int) -> VertexId | None:
        """Which source runs ahead of the others in the history of this seed: between two streams there is no order."""
        chance = random.Random(f"ahead {seed}")
        if len(self._sources) < 2 or chance.random() >= _AHEAD:
            return None
        return chance.choice(sorted(self._sources))

    def seeds_in_other_orders(self) -> list[int]:
        """Of several sources each runs ahead of the others in the history of one of these seeds."""
        found: dict[VertexId, int] = {}
        for seed in range(_SEEDS_LOOKED_AT if len(self._sources) > 1 else 0):
            if (source := self._ahead(seed)) is not None:
                found.setdefault(source, seed)
        return list(found.values())

    def _fit(self, action: ClientAction, judge: Judge) -> ClientAction:
        if not isinstance(action, Rescale):
            raise Unfit(f"actions: wanted Rescale(at_ms, parallelism), found {action!r}")
        return action if self._fits(action.parallelism, judge) else replace(action, parallelism=self._was)

    def _fits(self, parallelism: int, judge: Judge) -> bool:
        """Whether the job commits there, from beginning to end, what is wanted."""
        if parallelism not in self._fitting:
            tried = self._run(
                lambda _, number: self._paced.job(parallelism, number), 0, (), _LONGEST_MS, judge, for_all=True
            )
            self._fitting[parallelism] = not tried.violations
            if tried.violations:
                self.left_out.append(
                    f"parallelism {parallelism}, in which it goes wrong without faults and savepoints: "
                    f"{tried.violations[0]}"
                )
        return self._fitting[parallelism]

    # ---- inside

    def _run_calmly(self, interval_ms: int, *, with_sides: bool) -> Tried:
        """Without faults, restarts and hurry: slowly enough, and not much too slowly."""
        __tracebackhide__ = True
        wanted_ms = _CHECKPOINTS * interval_ms
        pause_ms = wanted_ms / _FIRST_GUESS
        sides = UnreadSides(self._env)
        calls, causes = BlockingCalls(), Causes()

        def made(operator: Operator) -> None:
            sides.look_at(operator)
            causes.look_at_code(operator)
            self.timers.look_at(operator)

        with calls.watched() if self._has_coroutines() else nullcontext():
            tried = self._run_at(pause_ms, is_first=True, when_made=made)
        causes.look_at_keys(self._env.graph.nodes)
        self.blocking, self.doubtful = calls.found, causes.in_code
        if with_sides:
            self._env, self.sides = sides.with_readers()
        if self.sides:
            self._plain = self._translated(self._env, 1)
            tried = self._run_at(pause_ms)
        if not wanted_ms / _TOLERANCE < tried.virtual_ms < wanted_ms * _TOLERANCE:
            tried = self._run_at(pause_ms * wanted_ms / max(tried.virtual_ms, pause_ms))
        _check("without any injected fault", tried)
        return tried

    def _has_coroutines(self) -> bool:
        return any(getattr(node.operator, "_is_async", False) for node in self._env.graph.nodes)

    def _run_in_hurry(self) -> Tried:
        """Slowed down, a small collection comes record by record. What goes wrong where several come at once, as a dict
        that is filled again for each, is seen where they do.
        """

        def unpaced(parallelism: int, number: int) -> Translation:
            return replace(self._plain, graph=replace(self._plain.graph, restart=no_restart()))

        tried = self._run(unpaced, 0, (), _LONGEST_MS, lambda status, output: (), when_made=self.timers.look_at)
        if tried.status == JobStatus.FAILED.value:
            _check("without any injected fault, with large batches", tried)
        return tried

    def _run_at(self, pause_ms: float, *, is_first: bool = False, when_made: WhenMade | None = None) -> Tried:
        self._paced.slow_down(pause_ms)
        return self._run(
            self._calm, 0, (), _LONGEST_MS, lambda status, output: (), is_first=is_first, when_made=when_made
        )

    def _calm(self, parallelism: int, number: int) -> Translation:
        translation = self._paced.job(parallelism, number)
        return replace(translation, graph=replace(translation.graph, restart=no_restart()))

    def _run(
        self,
        translated: Translated,
        seed: int,
        faults: tuple[Fault, ...],
        limit_ms: float,
        judge: Judge,
        actions: tuple[ClientAction, ...] = (),
        *,
        for_all: bool = False,
        when_made: WhenMade | None = None,
        is_first: bool = False,
    ) -> Tried:
        """`for_all`: with slots for all parallelisms. `when_made`: is called with each operator of a task."""
        slots = self._slots_for_all() if actions or for_all else self._slots
        with SimulatedCluster(self._task_managers, slots, seed=seed, faults=faults, **self._settings) as cluster:
            caches = ProcessCaches()

            def made(operator: Operator) -> None:
                caches.look_at(operator)
                if when_made is not None:
                    when_made(operator)

            cluster.probes.when_made = made
            return try_once(cluster, translated, limit_ms, judge, actions, self.outside, is_first=is_first)

    def _slots_for_all(self) -> int:
        """Per TaskManager, so that the job fits in each parallelism that it may be rescaled to."""
        parallelisms = (0, *candidates(self._was, self._env.max_parallelism))
        needed = max(slots_needed(self._paced.job(each, 1).graph) for each in parallelisms)
        return max(self._slots, -(-needed // self._task_managers))

    def _as_it_is(self, parallelism: int, number: int) -> Translation:
        if not parallelism and number == 1:
            return self._plain
        return self._translated(with_parallelism(self._env, parallelism or self._was, self._was), number)

    def _translated(self, env: StreamEnvironment, number: int) -> Translation:
        """Patient enough for more failures than a job is likely to meet in its life."""
        patient = copy.copy(env)
        patient.restart = exponential_delay(initial_ms=300, max_ms=10_000)
        patient.max_same_failures = None
        patient.checkpoints = replace(
            env.checkpoints,
            directory="",
            interval_ms=min(env.checkpoints.interval_ms or _LONGEST_INTERVAL_MS, _LONGEST_INTERVAL_MS),
            min_pause_ms=min(env.checkpoints.min_pause_ms, _LONGEST_INTERVAL_MS),
            timeout_ms=min(env.checkpoints.timeout_ms, 20_000),
            tolerable_failures=1_000_000,
        )
        return translate(
            patient,
            default_parallelism=self._task_managers * self._slots,
            task_managers=self._task_managers,
            work_dir=STORAGE,
            slots=self._slots if number == 1 and env is self._env else None,
            job_id=JobId(f"job-{number}"),
        )


def _checked_outside(env: StreamEnvironment, outside: Any) -> Outside:
    """Raises Unfit."""
    if not isinstance(outside, Mapping):
        raise Unfit(f"outside: wanted functions by name, as {{'payments': lambda: ...}}, found {outside!r:.60}")
    sinks = {node.name for node in env.graph.nodes if node.role == "sink"}
    for name, read in outside.items():
        if not callable(read):
            raise Unfit(
                f"outside: {name!r}: wanted a function that reads it at the end of each history, found {read!r:.60}"
            )
        if name in sinks:
            raise Unfit(f"outside: {name!r} is the name of a sink: give it another one")
    return dict(outside)


def _check(how: str, tried: Tried) -> None:
    """Raises AssertionError for a run that has gone wrong."""
    __tracebackhide__ = True
    if tried.violations:
        hint = ": does a source never return END?" if tried.status == STALLED else ""
        raise AssertionError(f"{how}: {tried.violations[0]}{hint}") from tried.crash
    if tried.status != JobStatus.FINISHED.value:
        raise AssertionError(f"{how}, the job is {tried.status}")


def _checked(env: StreamEnvironment, translation: Translation) -> int:
    """The job's checkpoint interval in ms; raises Unfit."""
    for vertex in translation.graph.vertices:
        if not vertex.bounded:
            raise Unfit(how_to_bound(translation.operators, vertex.name))
    if written := written_outside(translation.operators):
        raise Unfit(written)
    if env.checkpoints.interval_ms is None:
        raise Unfit(
            "the job takes no checkpoints, so it survives no failure: give its environment checkpoint_interval_ms"
        )
    return min(env.checkpoints.interval_ms, _LONGEST_INTERVAL_MS)
