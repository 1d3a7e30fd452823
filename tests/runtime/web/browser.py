"""Headless Chromium, the system's, by Playwright; and the app on a port, with views that a test may change."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from understudy.runtime.web.app import App
from understudy.runtime.web.server import WebServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("UNDERSTUDY_ALL_SYSTEMS"), reason="chromium is not installed"
)


@contextlib.contextmanager
def page_of(url: str, *, size: tuple[int, int] = (1280, 860), dark: bool = False) -> Iterator[Any]:
    """A page at this address. What its console and its scripts complain of fails the test at the end."""
    from playwright.sync_api import sync_playwright

    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
        )
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"a script of a job ran: {dialog.message}"))
        page.on("console", lambda said: complaints.append(said.text) if _is_complaint(said) else None)
        page.on("request", lambda request: _same_origin(request.url, url, complaints))
        page.goto(url)
        yield page
        browser.close()
    assert complaints == []


def _is_complaint(said: Any) -> bool:
    """What the network says (503, refused) is part of the tests; what the policy refuses is not."""
    return said.type == "error" and "Failed to load resource" not in said.text and "ERR_" not in said.text


def _same_origin(asked: str, ours: str, complaints: list[str]) -> None:
    if not asked.startswith((ours.partition("#")[0], "data:", "blob:")):
        complaints.append(f"asked elsewhere: {asked}")


@contextlib.contextmanager
def served(app: App, port: int = 0) -> Iterator[WebServer]:
    with WebServer(app, port=port) as server:
        yield server
