"""Two processes, no stream job: one actor asks another one, whose process is then killed; the watcher is notified.

    python examples/two_processes.py

prints the answer to a question, and then `Terminated`. The processes share a key pair, so nobody else can join in. The
child is forked before any system is started: a fork does not survive threads and sockets.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
from multiprocessing.connection import Connection

from understudy import Actor, ActorSystem, CurveKeys, Terminated, message


@message
class Multiply:
    """Answered with the product."""

    left: int
    right: int


class Calculator(Actor):
    """Lives in the other process."""

    def on_receive(self, message: object) -> object:
        match message:
            case Multiply(left, right):
                return left * right


class Mourner(Actor):
    """Watches an actor and reports its end."""

    def __init__(self, address: str, report: queue.Queue[Terminated]) -> None:
        self.address = address
        self.report = report

    def on_start(self) -> None:
        self.context.watch(self.context.actor_of(self.address))

    def on_receive(self, message: object) -> None:
        match message:
            case Terminated():
                self.report.put(message)


def calculate(keys: CurveKeys, parent: Connection) -> None:
    """The other process: tell the parent where the calculator is, and live until killed."""
    with ActorSystem("calculators", bind="tcp://127.0.0.1:0", curve=keys) as system:
        parent.send(system.spawn(Calculator(), name="calculator").address)
        signal.pause()


def main() -> None:
    keys = CurveKeys.generate()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=calculate, args=(keys, there), daemon=True)
    process.start()
    address = here.recv()
    report: queue.Queue[Terminated] = queue.Queue()
    with ActorSystem("askers", bind="tcp://127.0.0.1:0", curve=keys) as system:
        calculator = system.actor_of(address)
        system.spawn(Mourner(address, report))
        print("6 * 7 =", calculator.ask(Multiply(6, 7), timeout_ms=10_000).result())

        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        print(report.get(timeout=10))
    process.join()


if __name__ == "__main__":
    main()
