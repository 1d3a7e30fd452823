"""A job's record as a leader of an earlier version has written it."""

from __future__ import annotations

import zlib

import msgpack

from understudy.messages import CheckpointId, JobId, encode
from understudy.runtime.high_availability.job_record import ATTEMPTS_AHEAD, VERSION, JobRecord, read_record


def test_a_record_that_says_no_number_of_attempts_is_of_a_leader_that_counted_from_0() -> None:
    now = JobRecord(VERSION, JobId("job-1"), "orders", CheckpointId(1_007), attempts_until=5_000)
    said = msgpack.unpackb(encode(now))
    fields = next(each for each in said if isinstance(each, dict))
    del fields["attempts_until"]
    body = msgpack.packb(said)
    found = read_record(now.sealed()[:4] + zlib.crc32(body).to_bytes(4, "big") + body, "records/job-1")
    assert (found.ids_until, found.attempts_until) == (1_007, ATTEMPTS_AHEAD)
