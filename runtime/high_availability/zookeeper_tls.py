"""TLS with ZooKeeper: what a connection trusts and shows, and why none comes about.

kazoo tries again and again, and keeps to itself what a handshake has said. So after some seconds without a connection
one handshake with each server says what is wrong.
"""

from __future__ import annotations

import socket
import ssl

from .errors import UnusableFile
from .settings import CA_FILE, CERT_FILE, QUORUM, TLS_KEY_FILE, TLS_PASSWORD_FILE, HighAvailabilitySettings, unreadable

_SECONDS = 3.0
_NOT_YET_VALID, _HAS_EXPIRED, _OTHER_NAMES = 9, 10, (62, 64)
"""OpenSSL's X509_V_ERR_*."""


def tls_context(settings: HighAvailabilitySettings) -> ssl.SSLContext | None:
    """It trusts the CA file and nothing else, and asks for the server's name. None without TLS. Raises UnusableFile."""
    if not settings.ca_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _check_readable(CA_FILE, settings.ca_file)
    try:
        context.load_verify_locations(settings.ca_file)
    except ssl.SSLError as error:
        raise UnusableFile(
            f"{CA_FILE}: {settings.ca_file} holds no certificate in PEM form ({error.reason or error}): wanted those "
            "to trust, one after the other"
        ) from error
    if settings.cert_file:
        _show_own(context, settings)
    return context


def tls_problems(settings: HighAvailabilitySettings) -> dict[str, str]:
    """By server, what TLS has against a connection with it; empty for one that nobody answers at, or that has nothing
    against it. Blocks, for some seconds a server at most. Raises UnusableFile.
    """
    context, found = tls_context(settings), dict[str, str]()
    for server in settings.quorum.split(","):
        host, _, port = server.rpartition(":")
        try:
            plain = socket.create_connection((host.strip("[]"), int(port)), _SECONDS)
        except OSError:
            found[server] = ""
            continue
        with plain:
            found[server] = _problem(plain, host.strip("[]"), context, settings) if context else _missing(plain)
    return found


def _check_readable(key: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise unreadable(key, path, error) from error


def _show_own(context: ssl.SSLContext, settings: HighAvailabilitySettings) -> None:
    _check_readable(CERT_FILE, settings.cert_file)
    _check_readable(TLS_KEY_FILE, settings.tls_key_file)
    given, is_encrypted = settings.tls_password(), False

    def password() -> str:  # without it OpenSSL would ask on the terminal
        nonlocal is_encrypted
        is_encrypted = True
        return given

    try:
        context.load_cert_chain(settings.cert_file, settings.tls_key_file, password)
    except ssl.SSLError as error:
        key = settings.tls_key_file
        if is_encrypted and not given:
            why = f"{TLS_KEY_FILE}: {key} is encrypted: set {TLS_PASSWORD_FILE} to a file with its password"
        elif is_encrypted:
            why = f"{TLS_PASSWORD_FILE}: the password in {settings.tls_password_file} does not open {key}"
        elif error.reason == "KEY_VALUES_MISMATCH":
            why = f"{TLS_KEY_FILE}: {key} is not the key of the certificate {settings.cert_file} ({CERT_FILE})"
        else:
            why = (
                f"{CERT_FILE} and {TLS_KEY_FILE}: {settings.cert_file} and {key} are no certificate and its key in PEM "
                f"form ({error.reason or error})"
            )
        raise UnusableFile(why) from error


def _missing(plain: socket.socket) -> str:
    return f"it speaks TLS there: set {CA_FILE}" if _speaks_tls(plain) else ""


def _problem(plain: socket.socket, host: str, context: ssl.SSLContext, settings: HighAvailabilitySettings) -> str:
    try:
        connection = context.wrap_socket(plain, server_hostname=host)
    except TimeoutError:
        return ""
    except ssl.SSLCertVerificationError as error:
        return _distrust(error, host, settings)
    except OSError as error:
        return _refusal(error, settings) if _is_alert(error) else f"there is no TLS with it: {_reason(error)}"
    with connection:
        try:
            connection.settimeout(_SECONDS)
            connection.sendall(b"srvr")  # with TLS 1.3 a server refuses our certificate after the handshake
            connection.recv(1)
        except TimeoutError:
            return ""
        except OSError as error:
            return _refusal(error, settings)
    return ""


def _distrust(error: ssl.SSLCertVerificationError, host: str, settings: HighAvailabilitySettings) -> str:
    if error.verify_code == _HAS_EXPIRED:
        return "its certificate has expired: give the server a new one"
    if error.verify_code == _NOT_YET_VALID:
        return "its certificate is not valid yet: does a clock go wrong, there or here?"
    if error.verify_code in _OTHER_NAMES:
        return (
            f"its certificate is for another name than {host} ({error.verify_message}): write it in {QUORUM} as in "
            "the certificate, or give the server one with this name"
        )
    return (
        f"its certificate is not one that {settings.ca_file} vouches for: {error.verify_message}. {CA_FILE} must hold "
        "the authority that has signed it"
    )


def _refusal(error: OSError, settings: HighAvailabilitySettings) -> str:
    if settings.cert_file:
        return (
            f"it refuses the certificate {settings.cert_file} ({CERT_FILE}): {_reason(error)}. The server's trust "
            "store must hold the authority that has signed it"
        )
    return f"it wants a certificate of ours: set {CERT_FILE} and {TLS_KEY_FILE} ({_reason(error)})"


def _speaks_tls(plain: socket.socket) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with context.wrap_socket(plain):
            return True
    except OSError as error:
        return _is_alert(error)  # it has answered in TLS


def _is_alert(error: OSError) -> bool:
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "").upper()


def _reason(error: OSError) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
