"""Mutants of partials that go by the numbers of their keys: keys are taken for others, or rows forgotten."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa

from understudy.actors.barriers.in_flight_log import InFlightLog
from understudy.actors.flow.elements import KnownRows, NumberedRows
from understudy.actors.flow.numbered_by_key import NumberedByKey
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.state.columnar.known_rows import KnownKeys

from .mutant import CUT, LIVENESS, OUTPUT, Patch, mutant, plain
from .unaligned_mutants import held_up


def columns(seed: int) -> Scenario:
    topology = random.Random(f"columns {seed}").choice(("columnar", "columnar-updates"))
    return replace(plain(seed), topology=topology)


def held_up_columns(seed: int) -> Scenario:
    return replace(held_up(seed), topology="columnar-updates")


@mutant(OUTPUT, within=20, scenarios=columns)
def keys_have_the_slots_of_others(patch: Patch) -> None:
    take_in = KnownKeys.take_in
    patch.setattr(
        KnownKeys, "take_in", lambda self, named, slots, index: take_in(self, named, slots[::-1].copy(), index)
    )


@mutant(OUTPUT, within=20, scenarios=columns)
def rows_of_known_keys_are_not_sent(patch: Patch) -> None:
    patch.setattr(NumberedByKey, "_numbered", lambda self, rows: [])


@mutant(LIVENESS, OUTPUT, within=20, scenarios=columns)
def an_attempt_goes_on_with_the_numbers_of_the_one_before(patch: Patch) -> None:
    """Its channels are new, and know no key."""
    begin, before = NumberedByKey._begin, list[Any]()

    def go_on(self: NumberedByKey, origin: object) -> None:
        begin(self, origin)
        if origin is None:
            return
        if before and len(before[-1]._slots) == self._channels and before[-1] is not self:
            earlier = before.pop()
            self._count, self._owners, self._numbers = earlier._count, earlier._owners, earlier._numbers
            self._slots = earlier._slots
        before.append(self)

    patch.setattr(NumberedByKey, "_begin", go_on)


@mutant(CUT, OUTPUT, within=60, scenarios=held_up_columns)
def rows_by_number_are_not_in_flight(patch: Patch) -> None:
    add = InFlightLog.add

    def overlook(self: InFlightLog, channel: int, element: Any) -> None:
        if not (isinstance(element, KnownRows) and isinstance(element.rows, NumberedRows)):
            add(self, channel, element)

    patch.setattr(InFlightLog, "add", overlook)


@mutant(CUT, OUTPUT, within=60, scenarios=held_up_columns)
def what_is_in_flight_is_stored_under_other_keys(patch: Patch) -> None:
    """All under the key that was named first."""
    keys_of = KnownKeys._keys_of

    def first_alone(self: KnownKeys, numbers: Any) -> list[Any]:
        rows = len(range(numbers.start, numbers.stop)) if isinstance(numbers, slice) else len(numbers)
        return [each.take(pa.array([0] * rows)) for each in keys_of(self, slice(0, 1))]

    patch.setattr(KnownKeys, "_keys_of", first_alone)
