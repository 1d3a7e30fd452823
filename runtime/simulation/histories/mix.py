"""Mix: the histories that campaigns run. One seed is one of them.

Chance alone seldom leads where bugs are: of 300 histories 3 restored anything that was in flight. So in most histories
what happens is drawn for one situation, around the standard scenario of the seed; the rest is left to chance. Seeds are
dealt out like cards, so that each DECK of them in a row holds every theme as often as it is named.
Situations that were reached are counted by `situations.py`, and a test says how often each situation must be.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ..world.faults import (
    JOB_MANAGER,
    Fault,
    FreezeProcess,
    KillProcess,
    Partition,
    PowerFailure,
    RottenFile,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
    SyncedFolder,
)
from .actions import (
    CancelWithSavepoint,
    ClientAction,
    DisposeSavepoint,
    RestartFromCheckpoint,
    RestartFromDrained,
    RestartFromSavepoint,
    StopWithSavepoint,
    TakeSavepoint,
)
from .async_themes import asked_again, asked_elsewhere, asked_in_flight, asking
from .catalogue import CATALOGUE
from .inlet_themes import sent_in
from .inlet_topologies import INLETS
from .scenario import Scenario
from .theme_parts import ALL_KEYS, Chance, kills, moment, on_one_of, paced, replacement, with_faults
from .time_themes import between_timers, event_time, falls_silent
from .timed_topologies import TIMED
from .topologies import TOPOLOGIES, Workload
from .windowed_topologies import WINDOWED

DECK = 30
"""Of this number of histories in a row each theme has as many as it is named; those that are left are of chance."""

INLINE_PARTS = 0.4
"""Share of those in which small state stays inline, beside files."""

BESIDE = {"followed": 0.3, "transacted": 0.15, "expiring": 0.15}
"""Share of those of chance that run this job: readers follow an outlet, a sink is strict, state expires."""

Theme = Callable[[Chance, Scenario], Scenario]

_ALL_IN_FILES = Workload().inline_threshold_bytes
_FOLDERS: tuple[SyncedFolder, ...] = ("checkpoint", "savepoint", "output", "hidden output", "above")


def standard_history(seed: int, topology: str | None = None) -> Scenario:
    """The scenario of this seed: any topology unless one is named."""
    theme = _dealt(seed)
    of_its_own = topology is not None and topology not in TOPOLOGIES
    if topology in INLETS:
        theme = sent_in
    if theme is None and of_its_own:
        theme = random.Random(f"theme {seed}").choice(THEMES)
    if theme is None:
        name = topology or _beside(seed)
        drawn = Scenario.of(seed, name)
        return drawn if name is None else _of_topology(drawn, name)
    drawn = themed(theme, seed, None if of_its_own else topology)
    return drawn if topology is None else _of_topology(drawn, topology)


def _dealt(seed: int) -> Theme | None:
    """Its theme; None where all is left to chance."""
    deck, place = divmod(seed, DECK)
    return random.Random(f"deck {deck}").sample((*THEMES, *[None] * (DECK - len(THEMES))), DECK)[place]


def themed(theme: Theme, seed: int, topology: str | None = None) -> Scenario:
    """The scenario of this seed, changed so that it leads where the theme wants it. Some themes choose the topology."""
    chance = random.Random(f"themed {seed}")
    drawn = theme(chance, Scenario.of(seed, topology))
    return _with_slots(_with_inline_parts(chance, drawn))


def _beside(seed: int) -> str | None:
    drawn, least = random.Random(f"outlet {seed}").random(), 0.0
    for name, share in BESIDE.items():
        if least <= drawn < least + share:
            return name
        least += share
    return None


def _of_topology(scenario: Scenario, topology: str) -> Scenario:
    """The scenario with this job, but for what that one cannot bear."""
    timeout_ms = scenario.workload.alignment_timeout_ms if CATALOGUE[topology].exactly_once else None
    faults = scenario.faults
    if CATALOGUE[topology].takes_nothing_back:
        faults = tuple(fault for fault in faults if not isinstance(fault, RottenFile))
    workload = replace(scenario.workload, alignment_timeout_ms=timeout_ms)
    return replace(scenario, topology=topology, workload=workload, faults=faults)


# ---- themes


def in_flight(chance: Chance, scenario: Scenario) -> Scenario:
    """Barriers overtake what is on its way over a slow link, or waits for a slow TaskManager, and the job goes back."""
    drawn = on_one_of(scenario, chance, "keyed", "fan-in", "two-inputs", "pipeline", "ordered", "ordered", "ordered")
    drawn = paced(
        chance,
        drawn,
        records=48,
        keys=chance.randint(2, 4),
        records_per_second=7.1,
        alignment_timeout_ms=chance.choice((0, 0, 50)),
        batch_rows=1,
    )
    back_ms = moment(chance, drawn, 0.5, 1.05)
    if chance.random() < 0.3:
        drawn = with_faults(
            drawn, SlowProcess(900.0, 60_000.0, chance.randrange(2), round(chance.uniform(250, 900), 1))
        )
    for at_ms in (900.0, round(back_ms + 1_500.0, 1)):
        extra_ms = round(chance.uniform(400, 1_500), 1)
        drawn = with_faults(drawn, *(SlowLink(at_ms, 30_000.0, one, 1 - one, extra_ms) for one in (0, 1)))
    if chance.random() < 0.3:
        return replace(drawn, actions=(RestartFromCheckpoint(back_ms),))
    again = KillProcess(round(back_ms + chance.uniform(3_000, 6_000), 1), chance.randrange(2))
    return with_faults(drawn, KillProcess(back_ms, chance.randrange(2)), *((again,) if chance.random() < 0.5 else ()))


def time_in_flight(chance: Chance, scenario: Scenario) -> Scenario:
    """The same of watermarks."""
    return replace(in_flight(chance, scenario), topology=chance.choice(("reminders", "apart", "windows", "either")))


def ended_in_part(chance: Chance, scenario: Scenario) -> Scenario:
    """One subtask's data ends long before that of the others."""
    drawn = on_one_of(scenario, chance, "held", "held", "tallied")
    drawn = paced(chance, drawn, records=chance.randint(20, 35))
    if chance.random() < 0.3:
        slow = SlowProcess(
            moment(chance, drawn, 0, 0.5), 9_000.0, chance.randrange(2), round(chance.uniform(100, 900), 1)
        )
        drawn = with_faults(drawn, slow)
    if chance.random() < 0.5:
        drawn = replace(
            drawn, actions=tuple(replacement(chance, moment(chance, drawn, 0.8, 1.3), chance.choice((1, 3))))
        )
        return with_faults(drawn, *(kills(chance, drawn, 0.7, 1.6) if chance.random() < 0.5 else ()))
    return with_faults(drawn, *kills(chance, drawn, 0.75, 1.4, times=chance.choice((1, 2))))


def rescaled(chance: Chance, scenario: Scenario) -> Scenario:
    """One parallelism after the other, none of them a multiple of the one before."""
    drawn = on_one_of(
        scenario, chance, "held", "held", "ordered", "ordered", "tallied", "splits", "splits", "states", "two-inputs"
    )
    drawn = paced(chance, drawn, keys=ALL_KEYS, records=50, records_per_second=7.1, checkpoint_interval_ms=1_000)
    actions: list[ClientAction] = []
    for part, parallelism in enumerate(chance.sample((2, 3, 5), chance.choice((2, 3)))):
        at_ms = (0.4 + 0.2 * part) * drawn.workload.duration_ms
        actions += replacement(chance, round(at_ms, 1), parallelism)
    faults: tuple[Fault, ...] = chance.choice(((), (), tuple(kills(chance, drawn, 0.2, 1.0))))
    return replace(drawn, actions=tuple(actions), faults=faults)


def time_rescaled(chance: Chance, scenario: Scenario) -> Scenario:
    """The same of jobs with event time."""
    return replace(rescaled(chance, scenario), topology=chance.choice(sorted(TIMED | WINDOWED)))


def rotten(chance: Chance, scenario: Scenario) -> Scenario:
    """A file rots, and before there is a newer checkpoint the job has to read it."""
    records, retained = max(25, scenario.workload.records), chance.choice((2, 3))
    workload = replace(
        scenario.workload,
        records=records,
        records_per_second=min(2.7, scenario.workload.records_per_second),
        retained_checkpoints=retained,
    )
    drawn = replace(scenario, workload=workload, faults=(), actions=())
    faults: list[Fault] = []
    for _ in range(chance.choice((1, 2))):
        at_ms = moment(chance, drawn, 0.3, 1.0)
        faults += [
            RottenFile(at_ms, flips=chance.random() < 0.5, which=chance.randrange(4)),
            KillProcess(round(at_ms + chance.uniform(1, 150), 1), chance.randrange(drawn.task_managers)),
        ]
    return with_faults(drawn, *faults)


def given_up_as_lost(chance: Chance, scenario: Scenario) -> Scenario:
    """A TaskManager is silent for longer than it may be, is given up, and goes on running."""
    drawn = replace(scenario, task_managers=max(2, scenario.task_managers), faults=(), actions=())
    drawn = paced(chance, drawn, records_per_second=chance.choice((1.3, 2.7)), checkpoint_interval_ms=2_000)
    faults: list[Fault] = []
    for _ in range(chance.choice((1, 1, 2))):
        at_ms, for_ms = moment(chance, drawn, 0.1, 0.8), round(chance.uniform(6_500, 16_000), 1)
        who = chance.randrange(drawn.task_managers)
        if chance.random() < 0.6:
            faults.append(FreezeProcess(at_ms, for_ms, who, operations=chance.choice((0, 1, 3, 12))))
        else:
            faults.append(Partition(at_ms, for_ms, who, JOB_MANAGER, one_way=chance.random() < 0.5))
    return with_faults(drawn, *faults)


def overtaken_savepoints(chance: Chance, scenario: Scenario) -> Scenario:
    """What savepoints write takes long; newer checkpoints are complete before them. Then the job goes back."""
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "fan-in", "two-inputs", "states")
    drawn = paced(
        chance, drawn, max_concurrent_checkpoints=3, checkpoint_interval_ms=500, records=35, records_per_second=2.7
    )
    drawn = replace(drawn, storage_ms=0.0)
    first_ms = moment(chance, drawn, 0.2, 0.6)
    extra_ms = round(chance.uniform(2_000, 5_000), 1)
    drawn = replace(drawn, actions=(TakeSavepoint(first_ms),))
    slow = SlowFiles(round(first_ms - chance.uniform(1, 30), 1), 150.0, chance.randrange(2), extra_ms)
    after_ms = round(slow.at_ms + extra_ms + chance.uniform(400, 1_500), 1)
    back = KillProcess(after_ms, chance.randrange(drawn.task_managers))
    if chance.random() < 0.3:
        return _long_overtaken(drawn, slow)
    return with_faults(drawn, slow, back)


def _long_overtaken(scenario: Scenario, slow: SlowFiles) -> Scenario:
    """A task's state comes when more checkpoints have ended since than the JobManager remembers."""
    workload = replace(scenario.workload, records=70, keys=ALL_KEYS)
    longer = replace(slow, extra_ms=12_000 + slow.extra_ms)
    return with_faults(replace(scenario, workload=workload, actions=()), longer)


def powerless(chance: Chance, scenario: Scenario) -> Scenario:
    """The power fails right after a sync."""
    workload = replace(scenario.workload, checkpoint_interval_ms=1_000)
    drawn = replace(scenario, workload=workload, faults=scenario.faults[:1], storage_ms=0.0)
    failures = [PowerFailure(moment(chance, drawn, 0.05, 0.9), folder) for folder in chance.sample(_FOLDERS, 3)]
    if any(failure.after_sync == "savepoint" for failure in failures):
        at_ms = moment(chance, drawn, 0.2, 0.8)
        drawn = replace(drawn, actions=(TakeSavepoint(at_ms), *replacement(chance, at_ms + 1_500, 2)))
    return with_faults(drawn, *failures)


def crossing_savepoints(chance: Chance, scenario: Scenario) -> Scenario:
    """What one savepoint writes takes so long that a younger one is complete before it; then the job goes back, and no
    newer checkpoint is there.
    """
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "fan-in", "two-inputs", "states")
    drawn = paced(chance, drawn, max_concurrent_checkpoints=3, checkpoint_interval_ms=4_000, records=40)
    drawn = replace(drawn, storage_ms=0.0)
    older_ms = round(4_000.0 * chance.choice((1, 2)) + chance.uniform(600, 1_000), 1)
    younger_ms = round(older_ms + chance.uniform(450, 700), 1)
    slow = SlowFiles(older_ms - 50, 300.0, chance.randrange(2), round(chance.uniform(1_000, 1_500), 1))
    back_ms = round(older_ms + slow.extra_ms * 1.1 + chance.uniform(300, 500), 1)
    drawn = replace(drawn, actions=(TakeSavepoint(older_ms), TakeSavepoint(younger_ms)))
    return with_faults(drawn, slow, KillProcess(back_ms, chance.randrange(drawn.task_managers)))


def while_storing(chance: Chance, scenario: Scenario) -> Scenario:
    """The JobManager takes long to store metadata, and the job's tasks are restarted meanwhile."""
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "fan-in", "pipeline", "spread")
    drawn = paced(chance, drawn, max_concurrent_checkpoints=chance.choice((1, 2)), checkpoint_interval_ms=1_000)
    drawn = replace(drawn, storage_ms=0.0)
    slow = SlowFiles(moment(chance, drawn, 0.1, 0.5), 6_000.0, JOB_MANAGER, round(chance.uniform(600, 2_500), 1))
    kills = [KillProcess(round(slow.at_ms + chance.uniform(600, 6_000), 1), chance.randrange(2)) for _ in range(2)]
    if chance.random() < 0.5:
        taken = [TakeSavepoint(round(each.at_ms - chance.uniform(50, 1_500), 1)) for each in kills]
        drawn = replace(drawn, actions=tuple(sorted(taken, key=lambda action: action.at_ms)))
    return with_faults(drawn, slow, *kills)


def around_the_first_checkpoint(chance: Chance, scenario: Scenario) -> Scenario:
    """A job that goes on from a savepoint goes back before its own first checkpoint, when the savepoint is disposed of
    already; or after it, when a file of that checkpoint has rotted.
    """
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "fan-in", "spread", "states")
    retained = chance.choice((1, 1, 2))
    drawn = paced(
        chance, drawn, records_per_second=2.7, checkpoint_interval_ms=3_000, records=40, retained_checkpoints=retained
    )
    drawn = replace(drawn, storage_ms=0.0)
    at_ms = moment(chance, drawn, 0.25, 0.5)
    again_ms = round(at_ms + chance.uniform(500, 1_000), 1)
    gone_ms = round(again_ms + chance.uniform(1_000, 1_500), 1)
    end = chance.choice((StopWithSavepoint, CancelWithSavepoint))
    actions = (end(at_ms), RestartFromSavepoint(again_ms, chance.choice((2, 3))), DisposeSavepoint(gone_ms))
    if chance.random() < 0.5:
        drawn = replace(drawn, actions=actions)
        return with_faults(drawn, KillProcess(round(gone_ms + chance.uniform(200, 900), 1), chance.randrange(2)))
    rots_ms = round(again_ms + 4_500 + chance.uniform(0, 900), 1)
    drawn = replace(drawn, actions=actions[: chance.choice((2, 2, 3))])
    rot = RottenFile(rots_ms, flips=chance.random() < 0.5, which=chance.randrange(4))
    return with_faults(drawn, rot, KillProcess(round(rots_ms + chance.uniform(1, 150), 1), chance.randrange(2)))


def behind_the_data(chance: Chance, scenario: Scenario) -> Scenario:
    """All data has ended, the final checkpoint takes long, and a task fails."""
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "held", "tallied", "spread", "two-inputs")
    drawn = paced(chance, drawn, records=chance.randint(15, 30))
    drawn = replace(drawn, storage_ms=0.0)
    end_ms = drawn.workload.duration_ms
    slow = SlowStorage(round(end_ms - 800, 1), 9_000.0, round(chance.uniform(1_500, 4_000), 1))
    kills = [KillProcess(round(end_ms + chance.uniform(500, 4_000), 1), chance.randrange(2))]
    if chance.random() < 0.4:
        kills.append(KillProcess(round(kills[0].at_ms + chance.uniform(1_500, 5_000), 1), chance.randrange(2)))
    return with_faults(drawn, slow, *kills)


def drained(chance: Chance, scenario: Scenario) -> Scenario:
    """A job is drained, and goes on from that savepoint in another parallelism: there is nothing more to come."""
    topology = chance.choice(("keyed", "ordered", "held", "tallied", "splits", "states", "two-inputs", "spread"))
    drawn = paced(chance, on_one_of(scenario, chance, topology), checkpoint_interval_ms=1_000)
    at_ms = moment(chance, drawn, 0.2, 0.9)
    again = RestartFromDrained(round(at_ms + chance.uniform(0, 300), 1), chance.choice((1, 3, 3, 5)))
    drawn = replace(drawn, actions=(StopWithSavepoint(at_ms, drain=True), again))
    return with_faults(drawn, *(kills(chance, drawn, 0.2, 1.3) if chance.random() < 0.5 else ()))


def unsealed(chance: Chance, scenario: Scenario) -> Scenario:
    """The power fails right after the JobManager has written metadata, perhaps the only file of its checkpoint."""
    drawn = on_one_of(scenario, chance, "keyed", "ordered", "fan-in", "spread")
    drawn = paced(
        chance, drawn, checkpoint_interval_ms=1_000, inline_threshold_bytes=chance.choice((1, 1_000_000, 1_000_000))
    )
    drawn = replace(drawn, storage_ms=0.0)
    failures = [PowerFailure(moment(chance, drawn, 0.05, 0.9), "metadata") for _ in range(chance.choice((1, 2)))]
    taken = chance.choice(((), (TakeSavepoint(failures[0].at_ms + 1.0),)))
    return with_faults(replace(drawn, actions=taken), *failures)


THEMES: tuple[Theme, ...] = (
    in_flight,
    in_flight,
    ended_in_part,
    rescaled,
    rotten,
    given_up_as_lost,
    given_up_as_lost,
    overtaken_savepoints,
    powerless,
    powerless,
    crossing_savepoints,
    while_storing,
    around_the_first_checkpoint,
    behind_the_data,
    drained,
    unsealed,
    event_time,
    event_time,
    time_in_flight,
    time_rescaled,
    between_timers,
    falls_silent,
    asking,
    asked_again,
    asked_again,
    asked_elsewhere,
    asked_in_flight,
    sent_in,
)
"""As often as they are named."""


# ---- what each gets besides


def _with_inline_parts(chance: Chance, scenario: Scenario) -> Scenario:
    """Perhaps."""
    if chance.random() >= INLINE_PARTS or scenario.workload.inline_threshold_bytes != _ALL_IN_FILES:
        return scenario
    threshold = chance.choice((60, 300, 700, 1_500))
    return replace(scenario, workload=replace(scenario.workload, inline_threshold_bytes=threshold))


def _with_slots(scenario: Scenario) -> Scenario:
    """Enough for the widest job, and checkpoints left for who goes on from them."""
    slots = -(-scenario.job_parallelism // scenario.task_managers)
    workload = scenario.workload
    if any(isinstance(action, RestartFromCheckpoint) for action in scenario.actions):
        workload = replace(workload, retain_checkpoints="on_cancellation")
    return replace(scenario, slots=slots, workload=workload)
