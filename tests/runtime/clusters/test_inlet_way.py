"""InletWay and InletSender between the threads that send and the actor that takes."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from understudy.messages import JobId
from understudy.runtime.clusters.inlet import Inlet, InletWay
from understudy.runtime.clusters.inlet_sender import InletSender, Wake
from understudy.runtime.clusters.job_errors import InletClosed
from understudy.runtime.connectors import InletSource


class Line:
    """To the sender. Its first message is cut off by Ctrl-C."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.is_interrupted = True

    def tell(self, message: object) -> None:
        was, self.is_interrupted = self.is_interrupted, False
        if was:
            raise KeyboardInterrupt
        self.said.append(message)


class Client:
    """Of a job whose sender does nothing by itself."""

    waits_by = None
    job_manager: Any = None

    def __init__(self) -> None:
        self.line = Line()

    def start(self, _actor: object) -> Any:
        return self.line


def test_when_ctrl_c_comes_in_the_middle_of_a_send_the_next_one_wakes_the_sender() -> None:
    """Else all that was sent from then on, by whichever thread, would wait for ever."""
    client: Any = Client()
    inlet = Inlet(InletWay(client, JobId("job"), "orders", InletSource(), (1, 128)), None)
    with pytest.raises(KeyboardInterrupt):
        inlet.send({"id": 1})
    inlet.send({"id": 2})
    assert client.line.said == [Wake()]


class Raced(deque[Any]):
    """Another thread takes out what there is, just after it was seen."""

    def __len__(self) -> int:
        return 1

    def popleft(self) -> Any:
        raise IndexError("pop from an empty deque")


def test_a_closed_sender_takes_in_beside_threads_that_let_their_records_fail() -> None:
    sender = InletSender(None, JobId("job"), "orders", Raced(), deque())  # type: ignore[arg-type]
    sender.closed = InletClosed("inlet 'orders' takes no more records")
    sender.on_receive(Wake())
    sender.refuse_all()
