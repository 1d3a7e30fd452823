"""The short cut of the codec: it says and reads what the thorough way does, and only that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from enum import Enum, Flag
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    MAX_DEPTH,
    MAX_NESTED,
    CancelJob,
    FailureCause,
    Heartbeat,
    JobId,
    LeaderSessionId,
    LeaderSessionMessage,
    MalformedMessage,
    Message,
    MessageError,
    OperatorAnswer,
    StopJob,
    decode,
    encode,
    message,
    pack_plain,
    usual_fields,
)
from understudy.messages.codec import decode_thoroughly, encode_thoroughly
from understudy.messages.usual_fields import Unusual, prepare, usual_from_wire, usual_to_wire

from ..examples import examples
from .generated import generated
from .strategies import instances, messages, vocabulary


@message
class Guarded:
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise RuntimeError("negative")


@message
class Table:
    rows: tuple[tuple[str, ...], ...]


@message
class Counted:
    start: int
    total: int = field(init=False, default=5)


@message
class Base:
    first: int


@message
class Derived(Base):
    second: dict[str, tuple[Base, ...]]
    either: CancelJob | StopJob | None = None


class Corner(Enum):
    ORIGIN = (0, 0)


@message
class Cornered:
    corner: Corner


class Rights(Flag):
    READ = 1
    WRITE = 2


@message
class Allowed:
    rights: Rights


def outcome(function: Callable[[Any], Any], argument: Any) -> Any:
    """What a function returns, or how it refuses."""
    try:
        return function(argument)
    except MessageError as error:
        return type(error), str(error)


def is_usual(value: object) -> bool:
    """Whether the message goes there and back on the short cut."""
    try:
        data = msgpack.packb(usual_to_wire(value, MAX_DEPTH), unicode_errors="surrogatepass")
        raw = msgpack.unpackb(data, strict_map_key=False, object_pairs_hook=tuple, unicode_errors="surrogatepass")
        return bool(usual_from_wire(raw, MAX_DEPTH) == value)
    except Unusual:
        return False


def failure_of(depth: int) -> FailureCause:
    failure = FailureCause("E", "first")
    for _ in range(depth - 1):
        failure = FailureCause("E", "then", cause=failure)
    return failure


# -- both ways say and read the same


@pytest.mark.parametrize("cls", vocabulary().values(), ids=lambda cls: cls.__name__)
@examples(20)
@given(data=st.data())
def test_every_message_of_ours_comes_back_as_a_usual_case_and_of_the_same_bytes(cls: type, data: st.DataObject) -> None:
    value = data.draw(instances(cls))
    assert is_usual(value)
    said = encode(value)
    assert said == encode_thoroughly(value)
    assert decode(said) == decode_thoroughly(said) == value


@examples(500)
@given(messages(), st.data())
def test_damaged_bytes_fare_alike(value: object, data: st.DataObject) -> None:
    damaged = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 3), label="flips")):
        bit = data.draw(st.integers(0, len(damaged) * 8 - 1), label="bit")
        damaged[bit // 8] ^= 1 << bit % 8
    assert repr(outcome(decode, bytes(damaged))) == repr(outcome(decode_thoroughly, bytes(damaged)))


@pytest.mark.parametrize("depth", range(MAX_DEPTH - 4, MAX_DEPTH + 3))
def test_both_ways_draw_the_line_at_the_same_depth(depth: int) -> None:
    failure = failure_of(depth)
    told = LeaderSessionMessage(LeaderSessionId("s"), failure)
    assert outcome(encode, failure) == outcome(encode_thoroughly, failure)
    assert outcome(encode, told) == outcome(encode_thoroughly, told)
    fields: dict[str, Any] = {}
    for _ in range(depth):
        fields = {"error_type": "E", "error_message": "m", "cause": fields or None}
    data = msgpack.packb(["FailureCause", fields])
    assert outcome(decode, data) == outcome(decode_thoroughly, data)


@pytest.mark.parametrize(
    "value",
    [
        Guarded(1),
        Derived(1, {"a": (Base(2), Derived(3, {}))}, StopJob(JobId("j"))),
        Counted(1),
        Allowed(Rights.READ),
        Allowed(Rights.READ | Rights.WRITE),
        Table(((), ("f", "g"))),
    ],
    ids=repr,
)
def test_messages_of_users_are_said_and_read_alike(value: Any) -> None:
    said = encode(value)
    assert said == encode_thoroughly(value)
    assert decode(said) == decode_thoroughly(said)
    assert type(decode(said)) is type(value)


def test_a_class_that_does_more_than_fill_its_fields_still_does_so() -> None:
    forged = encode(Guarded(1)).replace(b"\xa5value\x01", b"\xa5value\xff")
    with pytest.raises(MalformedMessage, match="negative"):
        decode(forged)


def test_what_the_short_cut_does_not_know_goes_the_thorough_way() -> None:
    assert not is_usual(Counted(1))
    assert not is_usual(Cornered(Corner.ORIGIN))
    assert outcome(decode, encode(Cornered(Corner.ORIGIN)))[0] is MalformedMessage


# -- what the short cut must not let pass


@pytest.mark.parametrize(
    "fields",
    [
        b"\x93\xa6sender\xa1x\xa8sequence",  # an array that is cut like pairs
        b"\x93\x92\xa6sender\xa1x\x92\xa8sequence\x01\x92\xa7metrics\x90",  # an array of arrays that look like pairs
        b"\x83\xa6sender\xa1x\xa8sequence\x01\xa8sequence\x01",
        b"\x84\xa6sender\xa1x\xa8sequence\x01\xa7metrics\x90\xa7metrics\x90",
        b"\x83\xa6sender\xa1x\xa8sequence\x01\xa7metrics\x80",
        b"\x83\xa6sender\xa1x\xa8sequence\xc3\xa7metrics\x90",
    ],
)
def test_fields_that_only_look_right_are_refused(fields: bytes) -> None:
    data = b"\x92\xa9Heartbeat" + fields
    with pytest.raises(MalformedMessage) as refused:
        decode(data)
    assert str(refused.value) == outcome(decode_thoroughly, data)[1]


def test_a_message_from_the_short_cut_is_as_frozen_as_any() -> None:
    told = decode(encode(Heartbeat("x", 1)))
    assert type(told) is Heartbeat
    assert hash(told) == hash(Heartbeat("x", 1))
    with pytest.raises(FrozenInstanceError):
        told.sender = "y"
    assert isinstance(told, Heartbeat)


def test_a_refusal_carries_no_trace_of_the_short_cut() -> None:
    with pytest.raises(MalformedMessage) as refused:
        decode(b"\x05")
    assert refused.value.__context__ is None


def test_a_flaw_deep_in_plain_data_is_met_once_and_not_twice_a_level() -> None:
    """If each level tried both ways, this would take 2 to the MAX_NESTED attempts."""
    flawed: Any = OperatorAnswer("end")
    for _ in range(MAX_NESTED - 2):
        flawed = OperatorAnswer(flawed)
    forged = encode(flawed).replace(pack_plain("end"), b"\xa3\xff\xff\xff")
    with pytest.raises(MalformedMessage):
        decode(forged)


def test_a_message_of_any_class_stands_in_a_field_for_any() -> None:
    @message
    class Wrapped:
        inner: Message

    assert is_usual(Wrapped(Wrapped(Heartbeat("x", 1))))


@message
class Leaf:
    value: int


@message
class Tree:
    leaves: dict[str, tuple[Leaf | None, ...]]


def test_what_is_prepared_needs_nothing_more() -> None:
    assert not {Leaf, Tree} & generated()
    prepare([Tree])
    assert {Leaf, Tree} <= usual_fields._READERS.keys() & usual_fields._WRITERS.keys()
    before = generated()
    assert is_usual(Tree({"a": (Leaf(1), None)}))
    assert generated() == before
