"""Which errors count as repeatable: mistakes, of the program and ours, unless something in the chain may pass."""

from __future__ import annotations

import errno
import io

import pyarrow as pa
import pytest

from understudy.actors.errors import ChannelBroken, UserCodeError
from understudy.actors.failure import describe_in_task
from understudy.actors.flow.key_selector import NoSuchColumn
from understudy.messages import UnsupportedValue
from understudy.state import MissingState, StateIncompatible

from .tasks.task_stage import deployment


class GaveUp(Exception):
    may_pass = True


class ConnectionMisspelt(Exception):
    may_pass = False


class OperationalError(Exception):
    """As PEP 249 has it."""


class ServiceUnavailable(Exception):
    """As clients of services have it."""


def is_counted(error: BaseException, *, by_user_code: bool = True) -> bool:
    try:
        try:
            raise error
        except BaseException as it:
            if by_user_code:
                raise UserCodeError("worst", 17) from it
            raise
    except BaseException as told:  # noqa: BLE001
        return describe_in_task(told, deployment(), "tm-1").repeatable


@pytest.mark.parametrize(
    "error",
    [
        KeyError("delya"),
        ConnectionMisspelt(),
        SystemExit(3),
        FileNotFoundError(errno.ENOENT, "gone", "/out"),
        FileNotFoundError("without a number"),
        PermissionError(errno.EACCES, "not yours"),
        NotADirectoryError(errno.ENOTDIR, "a file"),
        OSError(errno.EROFS, "read-only"),
        OSError(errno.ENAMETOOLONG, "long"),
        io.UnsupportedOperation("not readable"),
    ],
    ids=repr,
)
def test_what_user_code_raises_counts_and_what_lies_on_the_disk_lasts(error: BaseException) -> None:
    assert is_counted(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("peer"),
        TimeoutError(),
        OSError(errno.EIO, "the disk failed"),
        OSError(errno.ENOSPC, "the disk is full"),
        OSError("of a client that has no number"),
        ChannelBroken("gap"),
        MissingState("chk-1/f"),
        OperationalError("server closed the connection"),
        ServiceUnavailable(),
        GaveUp(),
    ],
    ids=repr,
)
def test_what_may_pass_by_itself_does_not_count(error: BaseException) -> None:
    assert not is_counted(error)


def test_what_was_caused_by_something_passing_does_not_count_either() -> None:
    error = RuntimeError("cannot look it up")
    error.__cause__ = ConnectionRefusedError("no database")
    assert not is_counted(error)


@pytest.mark.parametrize(("outer", "counts"), [(ConnectionMisspelt, True), (GaveUp, False)])
def test_a_class_that_says_whether_it_may_pass_says_it_of_its_cause_too(outer: type[Exception], counts: bool) -> None:
    """As a login that is refused, which a client of a database calls an OperationalError."""
    error = outer("cannot log in")
    error.__cause__ = OperationalError("password authentication failed") if counts else ValueError("no number")
    assert is_counted(error) is counts


@pytest.mark.parametrize("error", [UnsupportedValue("a lambda"), NoSuchColumn(0, "no 'orgin'")], ids=repr)
def test_what_was_emitted_and_cannot_be_sent_counts(error: BaseException) -> None:
    assert is_counted(error, by_user_code=False)


@pytest.mark.parametrize(
    "error",
    [
        AssertionError(),
        KeyError("slot"),
        TypeError("wanted a RecordBatch"),
        pa.ArrowInvalid("offset overflow"),
        pa.ArrowNotImplementedError("no cast"),
        StateIncompatible("total", "int", "str"),
    ],
    ids=repr,
)
def test_a_mistake_of_our_own_code_counts_too(error: BaseException) -> None:
    """Whoever made it, it comes again after each restart."""
    assert is_counted(error, by_user_code=False)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "gone"),
        MemoryError(),
        RuntimeError("can't start new thread"),
        ChannelBroken("gap"),
        MissingState("chk-1/f"),
    ],
    ids=repr,
)
def test_what_our_own_code_meets_in_its_surroundings_does_not(error: BaseException) -> None:
    assert not is_counted(error, by_user_code=False)


def test_a_mistake_that_came_of_a_broken_channel_does_not_count() -> None:
    mistake = ValueError("a frame that cannot be read")
    mistake.__cause__ = ChannelBroken("gap")
    assert not is_counted(mistake, by_user_code=False)
