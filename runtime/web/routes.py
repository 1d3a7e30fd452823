"""Routes: which handler answers which method and path. A path is segments, of which `:name` stands for any one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

from .errors import HttpError, not_found
from .http import Request

Handler: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    """As in Flink's documentation: "/jobs/:jobid"."""
    handler: Handler
    summary: str
    takes: tuple[str, ...] = ()
    """Fields of its query, or with POST of its body."""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(each[1:] for each in self.segments if each.startswith(":"))


class Routes:
    """`absent`: stand behind the others, and only say why they are not served."""

    def __init__(self, routes: list[Route], absent: list[Route]) -> None:
        self.all = routes
        self._by_length: dict[int, list[Route]] = {}
        for each in (*routes, *absent):
            self._by_length.setdefault(len(each.segments), []).append(each)

    def knows(self, path: tuple[str, ...]) -> bool:
        """Whether there is, or is said to be no, such address."""
        return bool(self._fitting(path))

    def find(self, method: str, path: tuple[str, ...]) -> tuple[Route, list[str]]:
        """The route, and what stands for its names. Raises HttpError."""
        fitting = self._fitting(path)
        if not fitting:
            told = "The page is at /, and openapi.json describes the API"
            raise not_found(f"Not found: /{'/'.join(path)[:200]}. {told}")
        for each in fitting:
            if each.method == method or (method == "HEAD" and each.method == "GET"):
                found = [part for part, wanted in zip(path, each.segments, strict=True) if wanted.startswith(":")]
                return each, found
        allowed = ", ".join(sorted({each.method for each in fitting if each in self.all}))
        if not allowed:
            return self.find(fitting[0].method, path)
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not allowed for this path: wanted {allowed}")

    def _fitting(self, path: tuple[str, ...]) -> list[Route]:
        return [each for each in self._by_length.get(len(path), []) if _fits(each.segments, path)]


def listed_in(request: Request, name: str) -> list[str]:
    """a,b,c of the query; and `name=` as often as wanted."""
    return [part for given in request.query.get(name, []) for part in given.split(",") if part]


def _fits(wanted: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return all(each.startswith(":") or each == part for each, part in zip(wanted, path, strict=True))
