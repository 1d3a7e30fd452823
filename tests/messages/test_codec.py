"""Messages to bytes and back: the whole vocabulary, two versions that talk, and bytes that are no message."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from enum import Enum
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import (
    MAX_DEPTH,
    MAX_MESSAGE_BYTES,
    AcknowledgeCheckpoint,
    AskOperator,
    CancelJob,
    CancelTask,
    CheckpointId,
    ExecutionAttemptId,
    FailureCause,
    Heartbeat,
    JobId,
    JobStatus,
    JobStatusChanged,
    LeaderSessionId,
    LeaderSessionMessage,
    MalformedMessage,
    Message,
    MessageError,
    MessageTooLarge,
    NotifyCheckpointComplete,
    Plain,
    StopJob,
    SubtaskState,
    TriggerCheckpoint,
    UnregisteredMessage,
    UnsupportedValue,
    decode,
    encode,
    message,
)

from ..examples import examples
from .strategies import INT64, instances, messages, plain_values, vocabulary

TRIGGER = TriggerCheckpoint(JobId("job"), ExecutionAttemptId("a-1"), CheckpointId(7), 1_700_000_000_000)
SEED_CORPUS = [
    TRIGGER,
    Heartbeat("tm-0", 3),
    LeaderSessionMessage(LeaderSessionId("s"), TRIGGER),
    AskOperator(JobId("job"), "worst", True, ("JFK", 1), CancelJob(JobId("job")), {"a": [1, 2.5, None]}),
]


@message
class OneOfTwo:
    said: CancelJob | StopJob
    maybe: CancelJob | StopJob | None = None


@message
class Everything:
    flag: bool
    number: float
    words: dict[str, tuple[int, ...]]
    status: JobStatus | None = None
    anything: Message | None = None
    data: Plain = None


@message
class Unsendable:
    items: list[int]


class Level(Enum):
    LOW = 1


@message
class Levelled:
    level: Level


def raw(value: object) -> list[Any]:
    found: list[Any] = msgpack.unpackb(encode(value), strict_map_key=False, unicode_errors="surrogatepass")
    return found


def said(tag: str, **values: Any) -> bytes:
    data: bytes = msgpack.packb([tag, values], unicode_errors="surrogatepass")
    return data


def refusal(data: bytes) -> str:
    with pytest.raises(MalformedMessage) as refused:
        decode(data)
    return str(refused.value)


# -- there and back: every message of ours in test_usual_fields.py


@given(plain_values())
def test_plain_data_in_a_message_comes_back(value: object) -> None:
    asked = AskOperator(JobId("j"), "op", True, value, None, value)
    assert decode(encode(asked)) == asked


def test_a_float_that_is_no_number_comes_back() -> None:
    back = decode(encode(Everything(True, float("nan"), {}, data=[float("-inf")])))
    assert back.number != back.number
    assert back.data == [float("-inf")]


def test_an_int_will_do_for_a_float_and_becomes_one() -> None:
    assert type(decode(encode(Everything(True, 3, {}))).number) is float


@given(INT64)
@example(-(2**63))
@example(2**63 - 1)
def test_timestamps_far_off_come_back(timestamp_ms: int) -> None:
    assert decode(encode(replace(TRIGGER, timestamp_ms=timestamp_ms))).timestamp_ms == timestamp_ms


def test_text_that_is_no_unicode_comes_back() -> None:
    """Python names files that are no text by half surrogate pairs, and they stand in error texts."""
    failure = FailureCause("OSError", "no file '\udcff.csv'")
    assert decode(encode(failure)) == failure


# -- unions


def test_a_union_of_messages_says_which_it_is() -> None:
    for value in (OneOfTwo(StopJob(JobId("j"))), OneOfTwo(CancelJob(JobId("j")), StopJob(JobId("k")))):
        assert decode(encode(value)) == value


def test_a_message_that_a_union_does_not_name_is_refused() -> None:
    tag, values = raw(OneOfTwo(StopJob(JobId("j"))))
    assert "OneOfTwo.said: wanted one of CancelJob, StopJob, found Heartbeat" in refusal(
        said(tag, **values | {"said": raw(Heartbeat("x", 1))})
    )


# -- two versions that talk


def test_extra_fields_are_ignored() -> None:
    tag, values = raw(TRIGGER)
    assert decode(said(tag, **values, since_version_2=[1, {"x": None}])) == TRIGGER


def test_defaults_fill_what_is_missing() -> None:
    found = decode(said("NotifyCheckpointComplete", job_id="j", attempt_id="a", checkpoint_id=1, timestamp_ms=2))
    assert found == NotifyCheckpointComplete(JobId("j"), ExecutionAttemptId("a"), CheckpointId(1), 2, final=False)


# -- what is refused, and how it is told


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (said("CancelTask", job_id="j"), "CancelTask.attempt_id: is missing"),
        (said("CancelTask", job_id="j", attempt_id=5), "CancelTask.attempt_id: wanted str, found int 5"),
        (said("Heartbeat", sender="x", sequence=True), "Heartbeat.sequence: wanted int, found bool True"),
        (said("Heartbeat", sender="x", sequence=1.0), "Heartbeat.sequence: wanted int, found float 1.0"),
        (said("Heartbeat", sender=b"x", sequence=1), "Heartbeat.sender: wanted str, found bytes b'x'"),
        (said("Heartbeat", sender="x", sequence=1, metrics="abc"), "Heartbeat.metrics: wanted list, found str 'abc'"),
        (said("Heartbeat", sender="x", sequence=1, metrics=[5]), "Heartbeat.metrics[0]: wanted the fields of TaskMetr"),
        (said("OperatorAnswer", answer=5), "OperatorAnswer.answer: wanted plain data, found int 5"),
        (said("OperatorAnswer", answer=b"\xc1"), "OperatorAnswer.answer: not plain data"),
        (said("NoSuch"), "unknown message 'NoSuch': no module that this process has imported defines it"),
        (msgpack.packb(["Heartbeat", []]), "wanted [tag, fields], found list ['Heartbeat', []]"),
        (msgpack.packb(["Heartbeat"]), "wanted [tag, fields], found list ['Heartbeat']"),
        (msgpack.packb([["a"], {}]), "wanted [tag, fields]"),
        (msgpack.packb(5), "wanted [tag, fields], found int 5"),
        (b"", "not msgpack"),
        (b"\xc1", "not msgpack"),
        (encode(TRIGGER) + b"\x00", "not msgpack"),
        (b"\x92\xa9Heartbeat\x82\xa6sender\xa1x\xa6sender\xa1y", "a map holds one key twice"),
        (b"\x92\xa9Heartbeat\x81\x91\x01\x02", "unhashable"),
        (b"\x92\xa9Heartbeat\x81\xa6sender\xd6\xff\x00\x00\x00\x00", "wanted str, found Timestamp"),
    ],
)
def test_what_is_wrong_is_told_with_message_and_field(data: bytes, text: str) -> None:
    assert text in refusal(data)


def test_the_path_leads_through_messages_tuples_and_dicts() -> None:
    tag, values = raw(Everything(True, 0.5, {"a": (1,), "b": (1, 2)}))
    values["words"]["b"][1] = "two"
    wrong = said(tag, **values)
    assert f"{tag}.words['b'][1]: wanted int, found str 'two'" in refusal(wrong)
    outer = LeaderSessionMessage(LeaderSessionId("s"), Everything(True, 0.5, {}))
    tag, values = raw(outer)
    values["message"][1]["status"] = "nowhere"
    assert "LeaderSessionMessage.message.status: wanted a JobStatus, found str 'nowhere'" in refusal(
        said(tag, **values)
    )


def test_an_error_text_stays_short_whatever_was_sent() -> None:
    assert len(refusal(said("Heartbeat", sender=["x" * 100_000] * 100, sequence=1))) < 300
    assert len(refusal(said("X" * 100_000))) < 300


def test_deep_bytes_are_refused() -> None:
    inner: Any = {}
    for _ in range(MAX_DEPTH):
        inner = {"cause": inner}
    assert refusal(said("FailureCause", **inner)) == f"nested deeper than {MAX_DEPTH}"
    assert refusal(b"\x91" * 5000)
    assert refusal(b"\x81\x01" * 5000)


def test_large_bytes_are_refused_unread() -> None:
    assert "the limit is" in refusal(b"\xc0" * (MAX_MESSAGE_BYTES + 1))


def test_an_array_that_claims_to_be_huge_costs_nothing() -> None:
    assert refusal(b"\xdd" + struct.pack("!I", 2**32 - 1))
    assert refusal((b"\xdd" + struct.pack("!I", 2**20)) * 1000)


# -- whatever comes


@examples(500)
@given(st.binary(max_size=200))
def test_random_bytes_are_a_message_or_malformed(data: bytes) -> None:
    _decode_or_refuse(data)


@examples(500)
@given(messages() | st.sampled_from(SEED_CORPUS), st.data())
def test_damaged_bytes_are_a_message_or_malformed(value: object, data: st.DataObject) -> None:
    damaged = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 4), label="flips")):
        bit = data.draw(st.integers(0, len(damaged) * 8 - 1), label="bit")
        damaged[bit // 8] ^= 1 << bit % 8
    _decode_or_refuse(bytes(damaged))


@given(messages() | st.sampled_from(SEED_CORPUS))
def test_a_truncated_message_is_malformed(value: object) -> None:
    whole = encode(value)
    for length in {0, 1, len(whole) // 2, len(whole) - 1}:
        assert refusal(whole[:length])


@given(
    st.sampled_from(sorted(vocabulary())),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 300) | st.text(max_size=3) | st.binary(max_size=3) | st.floats(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | INT64, inner),
        max_leaves=6,
    ),
    st.data(),
)
def test_any_value_in_any_field_is_a_message_or_malformed(tag: str, wrong: object, data: st.DataObject) -> None:
    values = raw(data.draw(instances(vocabulary()[tag])))[1]
    if values:
        values[data.draw(st.sampled_from(sorted(values)))] = wrong
    _decode_or_refuse(said(tag, **values))


def _decode_or_refuse(data: bytes) -> None:
    """A decoded message is a valid one: it can be said again, and it is the same."""
    try:
        found = decode(data)
    except MalformedMessage:
        return
    assert type(found) in vocabulary().values() or type(found).__module__ == __name__
    assert decode(encode(found)) == found or "nan" in repr(found).lower()


# -- what cannot be sent


def test_what_is_no_message_is_not_sent() -> None:
    with pytest.raises(UnregisteredMessage, match="int is not a message: declare the class with @message"):
        encode(5)
    with pytest.raises(UnregisteredMessage):
        encode(LeaderSessionMessage(LeaderSessionId("s"), "no message"))


def test_a_message_larger_than_the_limit_is_a_message_error() -> None:
    with pytest.raises(MessageTooLarge, match=f"Heartbeat has .* bytes; the limit is {MAX_MESSAGE_BYTES}"):
        encode(Heartbeat("x" * MAX_MESSAGE_BYTES, 1))
    assert issubclass(MessageTooLarge, MessageError)


def test_what_could_not_be_read_for_its_depth_is_not_sent() -> None:
    failure = FailureCause("E", "first")
    for _ in range(MAX_DEPTH):
        failure = FailureCause("E", "then", cause=failure)
    with pytest.raises(UnsupportedValue, match="nested deeper"):
        encode(failure)


@pytest.mark.parametrize(
    "wrong",
    [
        Heartbeat("x", 2**70),
        Heartbeat("x", np.int64(3)),  # type: ignore[arg-type]
        Heartbeat("x", object()),  # type: ignore[arg-type]
        Heartbeat("x", 1, 5),  # type: ignore[arg-type]
        Heartbeat("x", 1, ("no metrics",)),  # type: ignore[arg-type]
        JobStatusChanged(JobId("j"), "running", JobStatus.CREATED, 1),  # type: ignore[arg-type]
        AcknowledgeCheckpoint(JobId("j"), ExecutionAttemptId("a"), CheckpointId(1), "no state", 3),  # type: ignore[arg-type]
        AskOperator(JobId("j"), "op", True, object(), None, None),
        Unsendable([1]),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_a_value_that_cannot_travel_is_told_to_who_sends_it(wrong: object) -> None:
    with pytest.raises(UnsupportedValue):
        encode(wrong)


def test_a_class_with_a_field_that_no_message_can_have_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedValue, match=r"Unsendable.items: messages have no fields of type list\[int\]"):
        encode(Unsendable([]))
    assert "Unsendable.items" in refusal(said(f"{__name__}.Unsendable", items=[]))


def test_an_enum_of_numbers_travels_by_its_value() -> None:
    assert raw(Levelled(Level.LOW))[1] == {"level": 1}
    assert decode(encode(Levelled(Level.LOW))) == Levelled(Level.LOW)


def test_a_state_of_many_key_groups_comes_back() -> None:
    assert decode(encode(SubtaskState({}))) == SubtaskState({})


def test_reading_deep_bytes_does_not_depend_on_the_recursion_limit() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        assert refusal(b"\x91" * 1000)
    finally:
        sys.setrecursionlimit(limit)


def test_a_cancel_task_is_a_few_dozen_bytes() -> None:
    assert len(encode(CancelTask(JobId("j"), ExecutionAttemptId("a")))) < 40
