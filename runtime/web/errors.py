"""What can go wrong in the web room.

HttpError            an answer that is none: its status, and a text for whoever asked
└── JobManagerAway   nobody answers at the JobManager's address now
"""

from __future__ import annotations

from http import HTTPStatus


class HttpError(Exception):
    """Answered in Flink's shape, {"errors": [text]}."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class JobManagerAway(HttpError):
    """It may come back: the page shows what was known, and asks again."""

    def __init__(self, text: str) -> None:
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, text)


def not_found(text: str) -> HttpError:
    return HttpError(HTTPStatus.NOT_FOUND, text)


def bad_request(text: str) -> HttpError:
    return HttpError(HTTPStatus.BAD_REQUEST, text)


def fault(error: Exception) -> HttpError:
    """For an exception that no handler foresaw. Its text stays in the log: there may be paths and values in it."""
    told = "This is a bug: the log of the process that serves the page says more, with the traceback"
    return HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, f"the server of the page failed: {type(error).__name__}. {told}")
