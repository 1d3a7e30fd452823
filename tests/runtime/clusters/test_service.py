"""examples/service, as its users have it: a server, HTTP, and kills. Every order answered with 200 counts, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.free_port import free_port

from .conftest import MARK, processes_of
from .jobs import WAIT_S, eventually

APP = Path(__file__).resolve().parents[3] / "examples" / "service" / "app.py"
CUSTOMERS = 5


class Service:
    """One after the other, always by the same command and at the same port."""

    def __init__(self, folder: Path, checkpoint_ms: int) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "service.log"
        self._env = os.environ | {
            "SHOP_FOLDER": str(folder / "shop"),
            "SHOP_CHECKPOINT_MS": str(checkpoint_ms),
            "PORT": str(port),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(base_url=self.url, timeout=WAIT_S)
        """One for all threads: each loads the certificates anew."""

    def start(self) -> None:
        """It answers when this returns."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, str(APP)], env=self._env, stdout=log, stderr=log)
        eventually(self._answers, lambda: f"an answer: {self._log.read_text()}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        eventually(lambda: processes_of(os.environ[MARK]) == [], "the end of all processes")

    def kill_a_task_manager(self) -> None:
        """Children of the template process, which is a child of the service."""
        assert self.process is not None
        (template,) = psutil.Process(self.process.pid).children()
        template.children()[0].kill()

    def terminate(self) -> None:
        """As a service manager does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=WAIT_S) == -signal.SIGTERM, self._log.read_text()

    def close(self) -> None:
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def order(self, number: int) -> str:
        """Send an order until it is answered with 200, as a client does that does not know whether it has arrived."""
        wanted = {"id": f"order-{number}", "customer": f"customer-{number % CUSTOMERS}", "cents": number}

        def is_taken() -> bool:
            try:
                return self.client.post("/orders", json=wanted).status_code == 200
            except httpx.TransportError:
                return False

        eventually(is_taken, lambda: f"order {number} to be taken: {self._log.read_text()}")
        return str(wanted["id"])

    def accounts(self) -> dict[str, dict[str, int]]:
        names = [f"customer-{number}" for number in range(CUSTOMERS)]
        return {name: self.client.get(f"/customers/{name}").json() for name in names}

    def savepoint(self) -> str:
        def taken() -> Any:
            answer = self.client.post("/savepoints")
            return answer.json()["path"] if answer.status_code == 200 else None

        return str(eventually(taken, "a savepoint"))

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self._log.read_text()
        try:
            return self.client.get("/docs").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[Callable[[int], Service]]:
    services: list[Service] = []

    def start(checkpoint_ms: int) -> Service:
        services.append(Service(tmp_path, checkpoint_ms))
        services[-1].start()
        return services[-1]

    yield start
    for service in services:
        service.close()


def expected(numbers: list[int]) -> dict[str, dict[str, int]]:
    """The accounts after these orders."""
    found = {f"customer-{each}": [n for n in numbers if n % CUSTOMERS == each] for each in range(CUSTOMERS)}
    return {name: {"orders": len(each), "cents": sum(each)} for name, each in found.items()}


class Clients(threading.Thread):
    """Some at a time send one order after the other, until they are enough."""

    def __init__(self, service: Service, number: int) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._service, self._number = service, number
        self.answered: list[int] = []
        self.is_enough = threading.Event()

    def run(self) -> None:
        while not self.is_enough.is_set():
            order = self._number + 100 * len(self.answered)
            self._service.order(order)
            self.answered.append(order)


class Follower(threading.Thread):
    """Takes all receipts by server-sent events, and connects again behind the last one it has."""

    def __init__(self, service: Service) -> None:
        super().__init__(name="follower", daemon=True)
        self._service = service
        self.receipts: list[dict[str, Any]] = []
        self.is_enough = threading.Event()

    def run(self) -> None:
        cursor = ""
        while not self.is_enough.is_set():
            headers = {"Last-Event-ID": cursor} if cursor else {}
            try:
                with self._service.client.stream("GET", "/receipts", headers=headers) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("id: "):
                            coming = line.removeprefix("id: ")
                        if line.startswith("data: "):
                            self.receipts += json.loads(line.removeprefix("data: "))
                            cursor = coming
            except httpx.TransportError:
                continue


@pytest.mark.chaos
def test_every_order_answered_with_200_counts_once_whatever_is_killed(start_service: Callable[[int], Service]) -> None:
    service = start_service(300)
    clients = [Clients(service, number) for number in range(4)]
    follower = Follower(service)
    for thread in (*clients, follower):
        thread.start()

    def some_more(orders: int = 30) -> None:
        before = sum(len(client.answered) for client in clients)
        eventually(lambda: sum(len(client.answered) for client in clients) >= before + orders, "more orders")

    some_more()
    service.kill_a_task_manager()
    some_more()
    service.kill()
    service.start()
    some_more()
    service.terminate()
    service.start()
    some_more()
    for client in clients:
        client.is_enough.set()
    for client in clients:
        client.join()
    answered = [order for client in clients for order in client.answered]
    eventually(lambda: service.accounts() == expected(answered), lambda: f"{service.accounts()} {expected(answered)}")
    eventually(lambda: len(follower.receipts) >= len(answered), "all receipts")
    follower.is_enough.set()
    service.terminate()
    follower.join()
    assert Counter(each["order"] for each in follower.receipts) == Counter(f"order-{each}" for each in answered)
    numbers = {each: [one["number"] for one in follower.receipts if one["customer"] == each] for each in expected([])}
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


@pytest.mark.chaos
def test_orders_last_though_the_service_dies_before_each_checkpoint(start_service: Callable[[int], Service]) -> None:
    """They are in the logs of runs that have no checkpoint; before the first one there is, and behind one."""
    service = start_service(3_600_000)
    service.order(1)
    service.kill()
    service.start()
    service.order(2)
    service.kill()
    service.start()
    eventually(lambda: service.accounts() == expected([1, 2]), "both orders")
    service.savepoint()
    service.order(3)
    service.kill()
    service.start()
    service.order(4)
    service.order(2)
    service.kill()
    service.start()
    eventually(lambda: service.accounts() == expected([1, 2, 3, 4]), lambda: f"{service.accounts()}")


@pytest.mark.processes
def test_an_order_that_the_inlet_cannot_hold_is_the_clients_mistake(start_service: Callable[[int], Service]) -> None:
    service = start_service(1000)
    for cents in (2**63, -(2**63) - 1, None):
        answer = service.client.post("/orders", json={"id": "o", "customer": "ann", "cents": cents})
        assert answer.status_code == 422, answer.text
    assert service.client.post("/orders", json={"id": "o", "customer": "ann", "cents": 2**63 - 1}).status_code == 200
