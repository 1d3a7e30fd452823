"""What tests ask of the web server, as a program would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from understudy.runtime.web.app import App

from .views import HEX

Clients = Callable[..., httpx.AsyncClient]
J, V = f"/v1/jobs/{HEX}", f"/v1/jobs/{HEX}/vertices/v1"


def ask(clients: Clients, app: App, *paths: str) -> list[Any]:
    """GET each; all must be found."""

    async def all_of_them() -> list[Any]:
        async with clients(app) as client:
            answers = [await client.get(path) for path in paths]
        assert [(answer.url.path, answer.status_code) for answer in answers if answer.status_code != 200] == []
        return [answer.json() for answer in answers]

    return asyncio.run(all_of_them())


def send(clients: Clients, app: App, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    async def all_of_them() -> list[httpx.Response]:
        async with clients(app) as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return asyncio.run(all_of_them())


async def completed(client: httpx.AsyncClient, path: str) -> Any:
    """What became of an order."""
    for _ in range(100):
        found = (await client.get(path)).json()
        if found["status"]["id"] == "COMPLETED":
            return found
        await asyncio.sleep(0)
    raise AssertionError(f"{path} is not completed")
