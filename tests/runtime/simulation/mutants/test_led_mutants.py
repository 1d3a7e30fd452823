"""Mutants of high availability: each is caught by a property of `test_led_cluster`, in one of its first histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from understudy.runtime.high_availability import term
from understudy.runtime.high_availability.kept_jobs import KeptRecord
from understudy.runtime.simulation.world.zookeeper import SimulatedZooKeeper

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
    patch.setattr(SimulatedZooKeeper, "is_session", lambda *_: True)


KILLED: Property = led.test_a_leader_that_is_killed_again_and_again_is_followed_and_the_output_is_exact
WOKEN: Property = led.test_a_leader_that_wakes_after_another_has_begun_writes_nothing
CUT_OFF: Property = led.test_so_does_one_that_has_nothing_to_write

MUTANTS = [
    (announced_without_a_pointer, KILLED, 4),
    (step_down_too_late, CUT_OFF, 1),
    (no_fencing, WOKEN, 3),
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
        except (AssertionError, pytest.fail.Exception) as caught:
            print(f"{mutant.__name__} is caught by {seed}: {caught}")
            return True
    return False
