"""States that say what made their values: other rules are refused, where a snapshot is read and at submit alike."""

from __future__ import annotations

import pytest

from understudy import ListState
from understudy.state.kinds.record_serializer import MadeNode, PlainNode
from understudy.state.kinds.schema_fit import SchemaMismatch
from understudy.state.kinds.state_descriptions import description_of, state_misfit

HOURS, DAYS = {"windows": "hours", "trigger": "end"}, {"windows": "days", "trigger": "end"}


def made_by(rules: dict[str, str] | None) -> ListState[int]:
    declared = ListState(int, name="contents")
    declared.made_by = rules
    return declared


def test_other_rules_are_refused_by_name() -> None:
    why = state_misfit(description_of(made_by(DAYS)), description_of(made_by(HOURS)))
    assert why == "windows: stored hours, wanted days"


def test_equal_rules_fit_and_so_does_what_says_nothing_of_them() -> None:
    for stored in (made_by(HOURS), made_by(None)):
        assert not state_misfit(description_of(made_by(HOURS)), description_of(stored))


def test_a_rule_that_did_not_exist_when_the_values_were_made_fits() -> None:
    newer = HOURS | {"lateness": "0 ms"}
    assert not state_misfit(description_of(made_by(newer)), description_of(made_by(HOURS)))
    assert not state_misfit(description_of(made_by(HOURS)), description_of(made_by(newer)))


def test_values_of_another_type_are_refused_within_the_same_rules() -> None:
    node = MadeNode(PlainNode("int"), HOURS)
    with pytest.raises(SchemaMismatch, match="str does not become int"):
        node.decoder(MadeNode(PlainNode("str"), HOURS).schema)
    assert node.decoder(MadeNode(PlainNode("bool"), HOURS).schema) is int
