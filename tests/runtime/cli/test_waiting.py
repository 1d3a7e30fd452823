"""Ctrl-C while a command waits for an answer, wherever it meets the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from understudy.runtime.cli.waiting import await_reply
from understudy.runtime.clusters.job_future import JobFuture
from understudy.runtime.system.future import ActorFuture


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal: what a shell starts in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting:
    """Its finalizer is interrupted: what a finalizer raises is not seen by anybody."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


class Looked(JobFuture[str]):
    """Calls `looked` at each look; the answer comes before the fourth."""

    def __init__(self, looked: Callable[[int], object]) -> None:
        self.source: ActorFuture[str] = ActorFuture()
        super().__init__(self.source, "the answer")
        self.looks, self.looked = 0, looked

    def result(self, timeout: float | None = None) -> str:
        self.looks += 1
        self.looked(self.looks)
        if self.looks == 4:
            self.source.set("the answer")
        return super().result(0.01)


def finalized(look: int) -> None:
    if look == 1:
        Interrupting()


def test_one_in_a_finalizer_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(finalized))


def test_one_that_comes_with_the_answer_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(lambda look: look == 4 and signal.raise_signal(signal.SIGINT)))


def test_a_second_one_is_not_held_back() -> None:
    with pytest.raises(KeyboardInterrupt):
        await_reply("waiting", Looked(lambda _: [signal.raise_signal(signal.SIGINT) for _ in range(2)]))


def test_afterwards_it_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert await_reply("waiting", Looked(lambda _: None)) == "the answer"
    assert signal.getsignal(signal.SIGINT) is before
