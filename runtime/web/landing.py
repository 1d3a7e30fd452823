"""Landing: where somebody comes out who has typed an address of the REST interface, or a wrong one, into a browser.

Nothing of a job is in these answers, so they are given to everybody.
"""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from urllib.parse import quote

from .http import Request, Response
from .routes import Routes

_SHOWN = 200


def landing(request: Request, routes: Routes) -> Response | None:
    """The page at a job or at the list of jobs, or what there is in place of a wrong address; None for a program, which
    gets JSON, and for any other address that there is. JSON of jobs is at /v1/jobs for browsers too.
    """
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return None
    match request.path:
        case ("jobs",):
            return _redirect(f"{request.root}/#/")
        case ("jobs", job_id):
            return _redirect(f"{request.root}/#/{quote(job_id)}")
        case ("v1", *path) | path if not routes.knows(tuple(path)):
            return _nothing_there(request, routes)
        case _:
            return None


def _redirect(location: str) -> Response:
    return Response(HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": location})


def _nothing_there(request: Request, routes: Routes) -> Response:
    root, path = escape(request.root), escape(f"/{'/'.join(request.path)}"[:_SHOWN])
    whole = [each.path for each in routes.all if each.method == "GET" and not each.parameters and not each.takes]
    links = [(f"{root}/", "the page: jobs, and what they do")]
    links += [(f"{root}{path if path == '/openapi.json' else f'/v1{path}'}", "JSON") for path in sorted(whole)]
    items = "".join(f'<li><a href="{address}">{address}</a> {what}</li>' for address, what in links)
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not found</title>'
        f'<link rel="stylesheet" href="{root}/app.css"></head><body><main><section class="card">'
        f"<h2>Not found</h2><p>there is nothing at {path}. There are:</p><ul>{items}</ul></section></main>"
        "</body></html>"
    )
    return Response(HTTPStatus.NOT_FOUND, text.encode("utf-8", "replace"), "text/html; charset=UTF-8")
