"""Who is answered, and what is refused: no token, a wrong one, foreign pages, paths, bodies, those who never end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from understudy import InvalidSetting, LocalCluster, asgi_app
from understudy.messages import CancelJob
from understudy.runtime.web.app import App, _files
from understudy.runtime.web.binding import check_binding
from understudy.runtime.web.http import MAX_BODY_BYTES
from understudy.runtime.web.live import MOST_STREAMS

from .views import HEX, JOB, AnsweringJobs

Clients = Callable[..., httpx.AsyncClient]
TOKEN = "a-long-secret"
ORDER = f"/jobs/{HEX}?mode=cancel"


def status_of(
    clients: Clients, app: App, method: str, path: str, headers: dict[str, str] | None = None, **of_client: Any
) -> tuple[int, str]:
    async def one() -> tuple[int, str]:
        async with clients(app, **of_client) as client:
            answer = await client.request(method, path, headers=headers)
            return answer.status_code, answer.text

    return asyncio.run(one())


@pytest.mark.parametrize("path", ["/jobs", "/live", "/openapi.json", "/page", f"/jobs/{HEX}"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Cookie": f"understudy={TOKEN}"},
        {"Cookie": "understudy=\x80; understudy"},
        {"Authorization": "Bearer \xff\xfe"},
    ],
    ids=["none", "wrong", "basic", "empty", "cookie", "broken-cookie", "bytes"],
)
def test_without_the_token_nothing_is_said_about_jobs(
    jobs: AnsweringJobs, client_of: Clients, path: str, headers: dict[str, str]
) -> None:
    raw: Any = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    status, text = status_of(client_of, App(jobs, token=TOKEN), "GET", path, raw)
    assert status == HTTPStatus.UNAUTHORIZED
    assert "orders" not in text
    assert jobs.questions == 0


def test_with_the_token_every_machine_is_answered(jobs: AnsweringJobs, client_of: Clients) -> None:
    far: dict[str, Any] = {"at": "203.0.113.9", "base": "http://jobs.example.com"}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert status_of(client_of, App(jobs, token=TOKEN), "GET", "/jobs", bearer, **far)[0] == HTTPStatus.OK


def test_a_browser_that_has_shown_the_token_has_a_cookie_that_scripts_cannot_read(
    jobs: AnsweringJobs, client_of: Clients
) -> None:
    async def both() -> None:
        async with client_of(App(jobs, token=TOKEN), root_path="/flow") as client:
            assert (await client.post("/flow/login")).status_code == HTTPStatus.UNAUTHORIZED
            done = await client.post("/flow/login", headers={"Authorization": f"Bearer {TOKEN}"})
            assert done.status_code == HTTPStatus.NO_CONTENT
            cookie = done.headers["set-cookie"]
            assert TOKEN not in cookie
            assert "HttpOnly; SameSite=Strict" in cookie
            assert "Path=/flow/;" in cookie
            assert (await client.get("/flow/jobs")).status_code == HTTPStatus.OK

    asyncio.run(both())


@pytest.mark.parametrize(
    ("of_client", "headers", "says"),
    [
        ({"at": "203.0.113.9"}, {}, "not 203.0.113.9"),
        ({"at": "testclient"}, {}, "not testclient"),
        ({"base": "http://evil.example"}, {}, "not 'evil.example'"),
        ({}, {"Host": "localhost.evil.example:8081"}, "not 'localhost.evil.example'"),
        ({}, {"X-Forwarded-For": "203.0.113.9"}, "through a proxy"),
        ({}, {"Forwarded": "for=203.0.113.9"}, "through a proxy"),
    ],
    ids=["address", "no-address", "rebound-name", "name-like-ours", "proxy", "forwarded"],
)
def test_without_a_token_only_this_machine_is_answered(
    jobs: AnsweringJobs, client_of: Clients, of_client: dict[str, Any], headers: dict[str, str], says: str
) -> None:
    status, text = status_of(client_of, App(jobs), "GET", "/jobs", headers, **of_client)
    assert status == HTTPStatus.FORBIDDEN
    assert says in text
    assert "trust_callers=True" in text


@pytest.mark.parametrize("base", ["http://localhost:8081", "http://127.0.0.1", "http://[::1]:8081", "http://host.corp"])
def test_names_of_loopback_and_those_that_are_allowed_are_ours(
    jobs: AnsweringJobs, client_of: Clients, base: str
) -> None:
    assert status_of(client_of, App(jobs, hosts=["host.corp"]), "GET", "/jobs", base=base)[0] == HTTPStatus.OK


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Origin": "http://[::"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("settings", [{}, {"token": TOKEN}, {"trust_callers": True}], ids=["loopback", "token", "open"])
def test_a_page_of_another_site_orders_nothing(
    jobs: AnsweringJobs, client_of: Clients, headers: dict[str, str], settings: dict[str, Any]
) -> None:
    """Also where its reader has the cookie."""
    given = headers | {"Authorization": f"Bearer {TOKEN}"}
    status, _ = status_of(client_of, App(jobs, **settings), "PATCH", ORDER, given)
    assert status == HTTPStatus.FORBIDDEN
    assert jobs.orders == []


def test_our_own_page_orders(jobs: AnsweringJobs, client_of: Clients) -> None:
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert status_of(client_of, App(jobs), "PATCH", ORDER, headers)[0] == HTTPStatus.ACCEPTED
    assert jobs.orders == [CancelJob(JOB)]


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/%2e%2e/app.py",
        "/vendor/../../app.py",
        "/vendor%2f..%2f..%2fapp.py",
        "/..%5capp.py",
        "//etc/passwd",
        "/static/index.html",
        "/app.css%00.js",
        "/taskmanagers/..%2f..%2fetc%2fpasswd",
        "/jobs/..%2f..%2fetc",
        "/page/%2e%2e/checkpoints/%2e%2e",
        f"/jobs/{HEX}/vertices/%2e%2e%2fetc",
    ],
)
def test_a_path_leads_nowhere_else(jobs: AnsweringJobs, client_of: Clients, path: str) -> None:
    async def one() -> tuple[int, str]:
        async with client_of(App(jobs)) as client:
            request = client.build_request("GET", "http://localhost/")
            request.url = request.url.copy_with(raw_path=path.encode())
            answer = await client.send(request)
            return answer.status_code, answer.text

    status, text = asyncio.run(one())
    assert status == HTTPStatus.NOT_FOUND
    assert '{"errors"' in text


def test_all_that_is_served_lies_in_the_pages_folder() -> None:
    assert {"index.html", "app.css", "main.js", "layout.js", "vendor/uPlot-LICENSE.txt"} <= set(_files())
    assert not [name for name in _files() if name.startswith(("/", ".")) or ".." in name or name.endswith(".py")]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * (MAX_BODY_BYTES + 1), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (b"{" * 5_000, HTTPStatus.BAD_REQUEST),
        (b"[" * 60_000, HTTPStatus.BAD_REQUEST),
        (b"\xff\xfe\x00", HTTPStatus.BAD_REQUEST),
        (b"[1]", HTTPStatus.BAD_REQUEST),
        (b'{"target-directory": "a\\u0000b"}', HTTPStatus.BAD_REQUEST),
        (b'{"target-directory": "' + b"a" * 5_000 + b'"}', HTTPStatus.BAD_REQUEST),
    ],
    ids=["long", "cut off", "deep", "bytes", "list", "nul", "long path"],
)
def test_a_body_that_is_no_order_is_refused(
    jobs: AnsweringJobs, client_of: Clients, body: bytes, status: HTTPStatus
) -> None:
    async def one() -> httpx.Response:
        async with client_of(App(jobs)) as client:
            return await client.post(f"/jobs/{HEX}/savepoints", content=body)

    answer = asyncio.run(one())
    assert answer.status_code == status
    assert answer.json()["errors"]
    assert jobs.orders == []


def test_an_endless_body_is_read_no_further_than_it_may_be_long(jobs: AnsweringJobs, client_of: Clients) -> None:
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * 4096

    async def one() -> int:
        async with client_of(App(jobs)) as client:
            return (await client.post(f"/jobs/{HEX}/savepoints", content=endless())).status_code

    assert asyncio.run(one()) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert sent <= MAX_BODY_BYTES / 4096 + 2


def test_a_query_with_too_many_fields_is_refused(jobs: AnsweringJobs, client_of: Clients) -> None:
    query = "&".join(f"get={i}" for i in range(500))
    assert status_of(client_of, App(jobs), "GET", f"/jobs/metrics?{query}")[0] == HTTPStatus.BAD_REQUEST


def test_clients_that_read_nothing_hold_nobody_up(jobs: AnsweringJobs, client_of: Clients) -> None:
    """200 pages whose readers never take a byte, and one that does; then one too many."""
    app = App(jobs)

    async def stalled() -> asyncio.Task[None]:
        stuck = asyncio.Event()

        async def receive() -> Any:
            await stuck.wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await stuck.wait()

        return asyncio.ensure_future(app(_live_scope(), receive, send))

    async def crowd() -> None:
        slow = [await stalled() for _ in range(200)]
        first = await _first_event(app)
        assert first.startswith(b"event: job\n")
        async with client_of(app) as client:
            assert (await client.get(f"/jobs/{HEX}")).status_code == HTTPStatus.OK
            slow += [await stalled() for _ in range(MOST_STREAMS)]
            for _ in range(100):  # let them begin
                await asyncio.sleep(0)
            assert app._live._streams == MOST_STREAMS
            refused = await client.get(f"/live?job={HEX}")
            assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert app._live._streams == 0

    asyncio.run(crowd())


def _live_scope() -> Any:
    return {
        "type": "http",
        "method": "GET",
        "path": "/live",
        "query_string": f"job={HEX}".encode(),
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
    }


async def _first_event(app: App) -> bytes:
    """Of a stream that is left after it."""
    found: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def receive() -> Any:
        await found
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body") and not found.done():
            found.set_result(message["body"])

    await app(_live_scope(), receive, send)
    return found.result()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "jobs.example.com", ""])
def test_an_address_that_others_can_reach_wants_a_token(host: str) -> None:
    with pytest.raises(InvalidSetting, match="web_token"):
        check_binding(host, None)
    check_binding(host, TOKEN)


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="8 at least"):
        check_binding("127.0.0.1", "short")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"web_port": 70_000}, "0 to 65535"),
        ({"web_port": True}, "0 to 65535"),
        ({"web_port": "8081"}, "0 to 65535"),
        ({"web_port": 0, "web_host": "0.0.0.0"}, "web_token"),
    ],
)
def test_a_cluster_says_what_is_wrong_with_its_page(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        LocalCluster(**settings)


def test_an_app_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="wanted a cluster, a history or both, found neither"):
        asgi_app()
    with pytest.raises(InvalidSetting, match="found str"):
        asgi_app("tcp://127.0.0.1:1")  # type: ignore[arg-type]
