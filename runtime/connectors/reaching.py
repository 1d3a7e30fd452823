"""Why something outside cannot be reached, in words that say what to check; and a look at it that takes no longer than
a user waits. For connectors; what is asked of the outside, and whether an error may pass, is theirs to say.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ...messages.shown_url import url_shown

LOOK_S = 1.5
"""How long a client waits in a look at submit."""
_ENOUGH_S = 2.0
"""How long the user waits."""

_MOST_CAUSES = 8
_NO_TLS_THERE = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")


class LookTooLong(TimeoutError):
    """Nothing was heard within the time of a look."""


def why_unreachable(error: BaseException, place: str) -> str:
    """What was found at `place`, and what to check; secrets of URLs are hidden. `place`: as it is to be shown."""
    for each in _chain(error):
        match each:
            case ssl.SSLCertVerificationError():
                return (
                    f"{place} shows a certificate that this machine does not trust ({each.verify_message}): check the "
                    "name of the host; if its authority is your own, name the authority's file in SSL_CERT_FILE"
                )
            case ssl.SSLError() if each.reason in _NO_TLS_THERE:
                return f"{place} does not speak TLS: check the port, or leave out the s of https, wss or rediss"
            case ssl.SSLError():
                return f"no TLS with {place} ({each.reason or each}): check its certificate and its port"
            case socket.gaierror():
                return f"no host of that name is known for {place} ({each.strerror}): check the spelling, and DNS"
            case ConnectionRefusedError():
                return f"nothing listens at {place} (connection refused): check the port, and that the server runs"
            case FileNotFoundError():
                return f"there is no socket {place}: check the path, and that the server runs"
            case TimeoutError():
                return f"no answer from {place}: check the host, and what lies in between (firewall, VPN)"
            case ConnectionError():
                return f"{place} has hung up ({each.strerror or each}): check that it speaks this protocol there"
    said = url_shown(str(error))
    return said if place in said else f"{place}: {type(error).__name__}: {said}"


def is_tls_mistake(error: BaseException) -> bool:
    """Whether another try must end in the same way: the certificate is not trusted, or there is no TLS."""
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return True
        if isinstance(each, ssl.SSLError) and each.reason in _NO_TLS_THERE:
            return True
    return False


def within(look: Callable[[], Any], seconds: float = _ENOUGH_S) -> None:
    """Call `look` on a thread of its own, and raise what it raises; LookTooLong when that takes longer: names may take
    long to resolve, whatever a client's time-outs are. The thread then ends by itself.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            look()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name="look-outside")
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if thread.is_alive():
        raise LookTooLong(f"no answer within {seconds:.1f} s")


def in_the_way(look: Callable[[], Any], may_pass: Callable[[Exception], bool], place: str) -> str:
    """Why this look at `place` fails, if that may pass; "" if it does not fail. Raises what never passes."""
    try:
        within(look)
    except Exception as error:
        if not (isinstance(error, LookTooLong) or may_pass(error)):
            raise
        return why_unreachable(error, place)
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__
