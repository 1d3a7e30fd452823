"""Clients of the app, without a server: requests go through ASGI as a server would hand them over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from understudy.runtime.web.app import App

from .views import AnsweringJobs, job_view


@pytest.fixture
def jobs() -> AnsweringJobs:
    return AnsweringJobs(job_view())


@pytest.fixture
def client_of() -> Callable[..., httpx.AsyncClient]:
    """A client at 127.0.0.1 that calls the app `localhost`, unless a test says otherwise."""

    def make(
        app: App | Any, *, at: str = "127.0.0.1", base: str = "http://localhost", **more: Any
    ) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app, client=(at, 50_000), root_path=more.pop("root_path", ""))
        return httpx.AsyncClient(transport=transport, base_url=base, **more)

    return make
