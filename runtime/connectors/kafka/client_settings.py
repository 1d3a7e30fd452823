"""ClientSettings: how a broker is reached and how one logs in, for librdkafka and for our own requests alike.

Settings are librdkafka's, by its names. Own requests know `security.protocol`, TLS with files or PEM texts, and the
mechanisms PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; the others (GSSAPI, OAUTHBEARER, AWS_MSK_IAM) are refused where such
requests are needed. Passwords are in no text, and in no `repr`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..names import several_names

Options: TypeAlias = "Mapping[str, Any] | Callable[[], Mapping[str, Any]]"
"""Settings of librdkafka, or a function that returns them where the job runs, so that secrets need not travel."""

LIBRDKAFKA = logging.getLogger("understudy.librdkafka")
"""Where librdkafka's own lines go. They repeat themselves while a broker is away, so they are off by default: what
matters of them is logged by the source and the sink, once.
"""
LIBRDKAFKA.setLevel(logging.CRITICAL)

_OF_CONNECTIONS = ("security.", "ssl.", "enable.ssl.", "sasl.", "socket.", "broker.", "client.", "reconnect.", "https.")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")


@dataclass(frozen=True, slots=True)
class Login:
    """By SASL."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """`bootstrap_servers`: "host:port,host:port"."""

    bootstrap_servers: str
    options: Options = field(repr=False)

    @classmethod
    def of(cls, bootstrap_servers: str | Sequence[str], options: Options | None, reserved: Sequence[str]) -> Any:
        """Checked. `reserved`: names of settings that the source or sink decides. Raises ValueError."""
        servers = ",".join(several_names("bootstrap_servers", bootstrap_servers, "'host:port'"))
        for server in servers.split(","):
            host, colon, port = server.strip().rpartition(":")
            if not (host and colon and port.isdigit()):
                raise ValueError(f"bootstrap_servers: wanted 'host:port', or several, found {server!r}")
        made = cls(servers, {} if options is None else options)
        if not callable(options):
            taken = sorted(set(made.given()) & {*reserved, "bootstrap.servers"})
            if taken:
                raise ValueError(f"options: {', '.join(taken)} cannot be set here; an argument or the job decides it")
        return made

    def given(self) -> dict[str, Any]:
        """What the user has set."""
        return dict(self.options() if callable(self.options) else self.options)

    def with_own(self, **own: Any) -> dict[str, Any]:
        """All settings of a client of librdkafka. Names of `own` have underscores in place of dots."""
        named = {_property(name): value for name, value in own.items() if value is not None}
        return {"bootstrap.servers": self.bootstrap_servers, "logger": LIBRDKAFKA} | self.given() | named

    def for_reaching(self, **own: Any) -> dict[str, Any]:
        """The same, of the user's settings only those about connections: for clients that ask, and carry no records."""
        chosen = {name: value for name, value in self.given().items() if name.startswith(_OF_CONNECTIONS)}
        return ClientSettings(self.bootstrap_servers, chosen).with_own(**own)

    @property
    def protocol(self) -> str:
        """How connections are secured."""
        return str(self.given().get("security.protocol", "plaintext")).lower()

    def login(self) -> Login | None:
        """How our own requests log in; None: not at all. Raises ValueError for a way that they cannot."""
        given, protocol = self.given(), self.protocol
        if protocol not in _PROTOCOLS:
            raise ValueError(f"security.protocol: wanted one of {', '.join(_PROTOCOLS)}, found {protocol!r}")
        if not protocol.startswith("sasl_"):
            return None
        mechanism = str(given.get("sasl.mechanism", given.get("sasl.mechanisms", "GSSAPI"))).upper()
        if mechanism not in MECHANISMS:
            raise ValueError(
                f"sasl.mechanism: {mechanism} cannot be used with guarantee='exactly-once', whose recovery speaks to "
                f"the broker by itself and knows {', '.join(MECHANISMS)}: use one of them, TLS with a client's "
                "certificate, or guarantee='at-least-once'"
            )
        return Login(mechanism, str(given.get("sasl.username", "")), str(given.get("sasl.password", "")))

    def tls(self) -> ssl.SSLContext | None:
        """For our own requests; None: without TLS."""
        if self.protocol not in ("ssl", "sasl_ssl"):
            return None
        given = self.given()
        context = ssl.create_default_context(cafile=given.get("ssl.ca.location"), cadata=given.get("ssl.ca.pem"))
        if certificate := given.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, given.get("ssl.key.location"), given.get("ssl.key.password"))
        verified = str(given.get("enable.ssl.certificate.verification", True)).lower() != "false"
        identified = str(given.get("ssl.endpoint.identification.algorithm", "https")).lower() != "none"
        context.check_hostname = verified and identified
        if not verified:
            context.verify_mode = ssl.CERT_NONE
        return context


def _property(name: str) -> str:
    return name if name in ("error_cb", "on_commit") else name.replace("_", ".")
