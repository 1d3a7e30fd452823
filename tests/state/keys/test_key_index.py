"""Looking for keys: what is there is found in its slot, what is not is told so and is not there afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.keys.key_index import KeyIndex

from ..columnar.slot_scripts import KEY_KINDS, KeyKind

key_kinds = st.sampled_from(sorted(set(KEY_KINDS) - {"texts of a dictionary"})).map(KEY_KINDS.__getitem__)


@settings(deadline=None)
@given(kind=key_kinds, data=st.data())
def test_find_gives_the_slot_of_keys_that_are_there_and_adds_none(kind: KeyKind, data: st.DataObject) -> None:
    added: list[Any] = data.draw(st.lists(kind.keys, min_size=1, max_size=30))
    sought: list[Any] = data.draw(st.lists(kind.keys | st.sampled_from(added), max_size=30))
    index = KeyIndex(kind.types)
    slots = dict(zip(added, index.slots_of(kind.columns(added)).tolist(), strict=True))
    known = len(index)
    assert index.find(kind.columns(sought)).tolist() == [slots.get(key, -1) for key in sought]
    assert len(index) == known == len(slots)


@settings(deadline=None)
@given(kind=key_kinds, data=st.data())
def test_keys_that_are_kept_have_new_slots_in_their_order(kind: KeyKind, data: st.DataObject) -> None:
    added: list[Any] = data.draw(st.lists(kind.keys, min_size=1, max_size=30, unique=True))
    index = KeyIndex(kind.types)
    index.slots_of(kind.columns(added))
    kept = [slot for slot in range(len(index)) if data.draw(st.booleans())]
    left, new_slots = index.keeping(np.array(kept, np.int64))
    assert new_slots[kept].tolist() == list(range(len(kept))) == list(range(len(left)))
    assert (new_slots >= 0).sum() == len(kept)
    assert left.find(kind.columns(added)).tolist() == new_slots.tolist()


def test_stored_values_that_read_as_the_same_are_one_key() -> None:
    """A bool8 is a byte, and any but 0 is True."""
    column = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 2, 2, 1], pa.int8()))
    index = KeyIndex([pa.bool8()])
    assert index.slots_of([column]).tolist() == [0, 1, 0, 0, 0]
    assert [column.to_pylist() for column in index.keys(slice(0, 2))] == [[True, False]]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.fixed_shape_tensor(pa.int64(), [2])])
def test_a_column_of_lists_cannot_be_a_key(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="cannot be a key"):
        KeyIndex([kind])
