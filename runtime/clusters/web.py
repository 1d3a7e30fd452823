"""The web app of a cluster: `asgi_app` to mount it in a service of the user's own, how it reaches the JobManager, and
the cluster's own server.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Awaitable, Collection, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...actors.ask_errors import ActorDead, AskTimeout, RemoteActorError, Unreachable
from ...actors.context import Ref
from ...actors.errors import ActorError, NotRestartable, UnknownJob
from ...messages import JobList, JobSummary, JobWatermarks, ListJobs, MessageError
from ...state.errors import StateError
from ...state.file_locations import AnyPath
from ...state.job_history import JobHistory
from ..api.errors import InvalidSetting
from ..system import ActorFuture, ActorSystem
from ..web.app import App
from ..web.errors import HttpError, JobManagerAway
from ..web.notebook import cluster_card
from ..web.server import WebServer
from .async_twin import Blocking
from .cluster_settings import ClusterSettings
from .job_errors import JobLost
from .job_future import JobFuture
from .remote_errors import KeyRefused, NoAnswer, NoJobManager, Refused, RemoteError
from .watermark_explanation import WatermarkExplanation, explain_all

if TYPE_CHECKING:
    from .job_handle import JobHandle

log = logging.getLogger(__name__)

_ANSWER_MS = 30_000.0
_SOON_SECONDS = 1.0
_STATUS = {UnknownJob.__name__: HTTPStatus.NOT_FOUND, NotRestartable.__name__: HTTPStatus.CONFLICT}


class AskedCluster(Protocol):
    """A Cluster or a RemoteCluster."""

    def ask_job_manager(self, message: Any, timeout_ms: float | None = None) -> JobFuture[Any]: ...


class ClusterJobs:
    """The web room's `Jobs`, of a cluster."""

    def __init__(self, cluster: AskedCluster) -> None:
        self._cluster = cluster

    def ask(self, message: Any, timeout_ms: float | None = None) -> Awaitable[Any]:
        return self._ask(message, timeout_ms or _ANSWER_MS)

    def explain(self, report: JobWatermarks) -> Iterable[WatermarkExplanation]:
        return explain_all(report)

    async def _ask(self, message: Any, timeout_ms: float) -> Any:
        try:
            return await self._cluster.ask_job_manager(message, timeout_ms)
        except (ActorDead, Unreachable, AskTimeout, JobLost, NoJobManager, NoAnswer, KeyRefused) as error:
            raise JobManagerAway(str(error)) from error
        except NotRestartable as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from error
        except UnknownJob as error:
            raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from error
        except Refused as error:
            raise HttpError(_status(error), str(error)) from error
        except (ActorError, MessageError, StateError, RemoteError, ValueError) as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from error
        except RuntimeError as error:
            raise JobManagerAway("its cluster has been closed, or has not been started") from error


def _status(refusal: Refused) -> HTTPStatus:
    """Of what the JobManager in another process has raised."""
    reason = refusal.__cause__
    name = reason.type_name if isinstance(reason, RemoteActorError) else ""
    return _STATUS.get(name, HTTPStatus.BAD_REQUEST)


def list_soon(cluster: AskedCluster) -> tuple[JobSummary, ...] | None:
    """The jobs; None from a JobManager that does not answer at once."""
    try:
        listed: JobList = cluster.ask_job_manager(ListJobs()).result(timeout=_SOON_SECONDS)
    except Exception:  # noqa: BLE001 - a notebook shows what is known; what is wrong, a call of a method says
        return None
    return listed.jobs


def asgi_app(
    cluster: AskedCluster | None = None,
    *,
    history: AnyPath | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    trust_callers: bool = False,
    read_only: bool = False,
) -> App:
    """The page and Flink's REST interface of a cluster, as an ASGI callable: mount it, or let a server run it.

    `cluster`: a Cluster or a RemoteCluster that is started; None for a server of the history alone. `history`: a folder
    of ended jobs, as the setting `history_dir` of clusters. Without a token only processes of this machine are
    answered, and only if they call it by a name of loopback or one of `hosts`; `trust_callers`: the service around it
    has checked who asks. `read_only`: no savepoint, no stop, no cancel. Raises InvalidSetting.
    """
    if cluster is None and history is None:
        raise InvalidSetting("asgi_app: wanted a cluster, a history or both, found neither: write asgi_app(cluster)")
    if cluster is not None and not hasattr(cluster, "ask_job_manager"):
        raise InvalidSetting(f"asgi_app: wanted a Cluster or a RemoteCluster, found {type(cluster).__name__}")
    if token is not None and not token:
        raise InvalidSetting("asgi_app: token: wanted a text, or None to answer this machine alone, found ''")
    return App(
        None if cluster is None else ClusterJobs(cluster),
        history=None if history is None else JobHistory(str(history)),
        token=token,
        hosts=hosts,
        trust_callers=trust_callers,
        read_only=read_only,
        version=_version(),
    )


class WebSide(Blocking):
    """A part of Cluster: its page."""

    settings: ClusterSettings
    _system: ActorSystem | None
    _handles: list[JobHandle]
    _web: WebServer | None = None

    @property
    def web_url(self) -> str | None:
        """Where the page is; None without the setting `web_port`."""
        return None if self._web is None else self._web.url

    def ask_job_manager(self, message: Any, timeout_ms: float | None = None) -> JobFuture[Any]:
        """For the web: a message of the vocabulary, and the JobManager's answer."""
        _, job_manager = self._running()
        answer = cast("ActorFuture[Any]", job_manager.ask(message, timeout_ms=timeout_ms))
        return JobFuture(answer, f"{type(message).__name__} to the JobManager")

    def _repr_html_(self) -> str:
        is_running = self._system is not None
        listed = list_soon(self) if is_running else None
        return cluster_card(type(self).__name__, is_running, self._handles, listed, self.web_url)

    def _running(self) -> tuple[ActorSystem, Ref]:
        raise NotImplementedError

    def _serve_web(self) -> WebServer | None:
        """As the settings say; None when they say nowhere."""
        settings = self.settings
        if settings.web_port is None:
            return None
        app = asgi_app(self, history=settings.history_dir, token=settings.web_token)
        server = WebServer(app, settings.web_host, settings.web_port, settings.web_token).start()
        log.info("the page is at %s", server.url)
        return server

    def _close_web(self) -> None:
        if self._web is not None:
            self._web.close()
            self._web = None


def _version() -> str:
    try:
        return importlib.metadata.version("understudy")
    except importlib.metadata.PackageNotFoundError:
        return "0"
