"""Mutants of high availability: each is caught by a property of `test_led_cluster`, or by led histories, in one of the
first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from understudy.actors.jobs.job_master import JobMaster
from understudy.actors.tasks.leader_link import LeaderLink
from understudy.messages import CheckpointId, SubmitJob
from understudy.runtime.high_availability import term
from understudy.runtime.high_availability.kept_jobs import KeptJobs, KeptRecord, ReservedNumbers
from understudy.runtime.high_availability.leader import Leader
from understudy.runtime.high_availability.nodes import Nodes, place_in_queue, who_leads
from understudy.runtime.simulation.histories.led_history import judge_led
from understudy.runtime.simulation.world import zookeeper
from understudy.runtime.simulation.world.cluster import Stalled
from understudy.runtime.simulation.world.zookeeper import SimulatedLeadership, SimulatedSession, SimulatedZooKeeper
from understudy.state.checkpoints.high_availability import KeptJob

from ..world import test_led_cluster as led
from .mutant import Patch, nothing

Property = Callable[[int], None]


def announced_without_a_pointer(patch: Patch) -> None:
    """A checkpoint counts, though no successor can find it."""
    patch.setattr(KeptRecord, "add", nothing)


def step_down_too_late(patch: Patch) -> None:
    """The leader is sure for longer than its session lives."""
    patch.setattr(term, "SURE_FOR", 2.0)


def no_fencing(patch: Patch) -> None:
    """A leader that woke late is sure, and ZooKeeper takes what it writes."""
    patch.setattr(term, "SURE_FOR", 1_000.0)
    patch.setattr(SimulatedLeadership, "is_session", True)


def an_id_is_used_twice(patch: Patch) -> None:
    """The next leader begins behind the newest checkpoint that completed, and not behind what was triggered."""

    def opened(self: KeptJobs, submitted: SubmitJob, record: KeptRecord) -> KeptJob:
        ids = [each.checkpoint_id for each in record.now.checkpoints]
        record.now = replace(record.now, ids_until=CheckpointId(max(ids, default=0) + 1))
        return as_it_is(self, submitted, record)

    as_it_is = KeptJobs._opened
    patch.setattr(KeptJobs, "_opened", opened)


def attempts_are_counted_from_0_again(patch: Patch) -> None:
    """By each leader: what earlier ones' attempts had in progress stays, or they remove what the next one's have."""
    patch.setattr(ReservedNumbers, "next_after", lambda _, previous: previous + 1)


def a_candidate_does_not_watch_the_one_before_it(patch: Patch) -> None:
    """It is never woken."""
    patch.setattr(
        zookeeper, "place_in_queue", lambda nodes, folder, own, _: place_in_queue(nodes, folder, own, nothing)
    )


def a_candidate_does_not_look_again_when_its_connection_is_back(patch: Patch) -> None:
    """What a watch says while it is cut off is lost."""

    def say(self: SimulatedZooKeeper, session: SimulatedSession, watch: Callable[[], None]) -> None:
        if not (session.is_cut_off or session.is_over):
            watch()

    patch.setattr(SimulatedZooKeeper, "_say", say)


def who_follows_watches_the_queue_alone(patch: Patch) -> None:
    """And not the first in it, which has not said yet where it is."""

    def half_watched(nodes: Nodes, folder: str, changed: Callable[[], None]) -> Leader | None:
        nodes.children(folder, changed)
        return who_leads(nodes, folder, nothing)

    patch.setattr(zookeeper, "who_leads", half_watched)


def what_was_lost_before_a_registration_stays_lost(patch: Patch) -> None:
    """Orders that a TaskManager dropped, as it asked once more whom it had asked already."""
    patch.setattr(JobMaster, "_go_on_after_silence", lambda *_: [])
    patch.setattr(LeaderLink, "is_from", lambda *_: False)


def in_led_histories(seed: int) -> None:
    verdict = judge_led(seed)
    assert not verdict.violations, verdict.violations


KILLED: Property = led.test_a_leader_that_is_killed_again_and_again_is_followed_and_the_output_is_exact
WOKEN: Property = led.test_a_leader_that_wakes_after_another_has_begun_writes_nothing
WAITS_CUT_OFF: Property = led.test_one_that_waits_and_is_cut_off_when_its_turn_comes_leads_when_it_is_back
ENDS_LATE: Property = led.test_an_attempt_of_an_earlier_leader_that_ends_late_removes_nothing_of_the_next_one
CUT_OFF: Property = led.test_so_does_one_that_has_nothing_to_write

MUTANTS = [
    (announced_without_a_pointer, KILLED, 4),
    (step_down_too_late, CUT_OFF, 1),
    (no_fencing, WOKEN, 3),
    (an_id_is_used_twice, in_led_histories, 8),
    (attempts_are_counted_from_0_again, ENDS_LATE, 1),
    (attempts_are_counted_from_0_again, in_led_histories, 4),
    (announced_without_a_pointer, in_led_histories, 8),
    (a_candidate_does_not_watch_the_one_before_it, in_led_histories, 1),
    (a_candidate_does_not_look_again_when_its_connection_is_back, WAITS_CUT_OFF, 1),
    (who_follows_watches_the_queue_alone, in_led_histories, 1),
    (what_was_lost_before_a_registration_stays_lost, in_led_histories, 30),
]


@pytest.mark.parametrize(
    ("mutant", "holds", "within"), MUTANTS, ids=lambda each: getattr(each, "__name__", "") or str(each)
)
def test_the_led_cluster_finds(mutant: Callable[[Patch], None], holds: Property, within: int) -> None:
    assert any(_is_caught(mutant, holds, seed) for seed in range(within))


def _is_caught(mutant: Callable[[Patch], None], holds: Property, seed: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        try:
            holds(seed)
        except (AssertionError, Stalled, pytest.fail.Exception) as caught:
            print(f"{mutant.__name__} is caught by {seed}: {caught}")
            return True
    return False
