"""Why no connection to ZooKeeper comes about, as far as TLS has to do with it.

kazoo tries again and again, and keeps to itself what a handshake has said. So after some seconds without a connection
one handshake with each server says what is wrong.
"""

from __future__ import annotations

import socket
import ssl

from .settings import CA_FILE, CERT_FILE, HighAvailabilitySettings

_SECONDS = 3.0


def tls_problem(settings: HighAvailabilitySettings) -> str | None:
    """A readable text about the first server that TLS has a problem with. Blocks, for some seconds a server at most."""
    for server in settings.quorum.split(","):
        host, _, port = server.rpartition(":")
        try:
            problem = _problem(host.strip("[]"), int(port), settings)
        except OSError:
            continue  # nobody answers there at all
        if problem:
            return f"{server}: {problem}"
    return None


def _problem(host: str, port: int, settings: HighAvailabilitySettings) -> str | None:
    if not settings.ca_file:
        return f"it speaks TLS there: set {CA_FILE}" if _speaks_tls(host, port) else None
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.tls_key_file)
    try:
        with (
            socket.create_connection((host, port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            connection.settimeout(_SECONDS)
            connection.sendall(b"srvr")  # with TLS 1.3 a server refuses our certificate after the handshake
            connection.recv(1)
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not one that {settings.ca_file} vouches for: {error.verify_message}"
    except TimeoutError:
        return None
    except ssl.SSLError as error:
        if settings.cert_file:
            return (
                f"there is no TLS with it, or it refuses the certificate {settings.cert_file}: {error.reason or error}"
            )
        return f"there is no TLS with it, or it wants a certificate of ours ({CERT_FILE}): {error.reason or error}"
    return None


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), _SECONDS) as plain:
        try:
            with context.wrap_socket(plain):
                return True
        except TimeoutError:
            return False
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "").upper()  # it has answered in TLS
