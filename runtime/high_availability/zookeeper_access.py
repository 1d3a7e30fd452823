"""Who we are for ZooKeeper, who may use our nodes, and what is said when that does not fit. Asks nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo.security import ACL, Permissions, make_acl

from .errors import AccessDenied
from .settings import AUTH_FILE, AUTH_SCHEME, CERT_FILE, CLIENT_ACL, CREATOR, OPEN, PATH_ROOT, HighAvailabilitySettings

_LETTERS = {
    "c": Permissions.CREATE,
    "d": Permissions.DELETE,
    "r": Permissions.READ,
    "w": Permissions.WRITE,
    "a": Permissions.ADMIN,
}


def access_options(settings: HighAvailabilitySettings) -> dict[str, Any]:
    """For kazoo's client. Raises UnusableFile."""
    options: dict[str, Any] = {}
    if credentials := settings.credentials():
        user, _, password = credentials.partition(":")
        if settings.auth_scheme == "sasl":
            options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
        else:
            options["auth_data"] = [("digest", credentials)]
    if settings.acl == CREATOR:
        options["default_acl"] = [make_acl("auth", "", all=True)]  # the server puts in who has come
    return options


def is_open(acls: Sequence[ACL]) -> bool:
    """Whether somebody who proves nothing may do something."""
    return any(acl.id.scheme in ("world", "ip") for acl in acls)


def user_refused(settings: HighAvailabilitySettings) -> AccessDenied:
    if not settings.auth_file:
        return AccessDenied(f"ZooKeeper at {settings.quorum} wants a user: set {AUTH_FILE} and {AUTH_SCHEME}")
    return AccessDenied(
        f"ZooKeeper at {settings.quorum} refuses {_who(settings)}: the password is wrong, or the server does not know "
        f"this user, or does not know {settings.auth_scheme!r} at all. Correct {AUTH_FILE} and {AUTH_SCHEME}, or the "
        "server's login configuration"
    )


def user_wanted(settings: HighAvailabilitySettings) -> AccessDenied:
    return AccessDenied(
        f"ZooKeeper at {settings.quorum} ends the session of {_who(settings)}, since it serves only those who prove in "
        f"another way who they are: set {AUTH_FILE}, and {AUTH_SCHEME} as its enforce.auth.schemes say"
    )


def user_unknown(settings: HighAvailabilitySettings) -> AccessDenied:
    """Nodes for their creator alone, and the server does not know who that is."""
    return AccessDenied(
        f"{CLIENT_ACL} is {CREATOR}, and ZooKeeper at {settings.quorum} has not asked who {_who(settings)} is: set "
        f"{AUTH_FILE}, or {CERT_FILE} where the servers take certificates for users, or set {CLIENT_ACL} to {OPEN}"
    )


def not_for_us(settings: HighAvailabilitySettings, path: str, acls: Sequence[ACL] | None) -> AccessDenied:
    """A node that is there. `acls`: None where we may not even see them."""
    found = "an ACL that we may not see" if acls is None else f"the ACL {_text(acls)}"
    correct = f"Correct {AUTH_FILE} and {AUTH_SCHEME}" if settings.auth_file else f"Set {AUTH_FILE}"
    return AccessDenied(
        f"ZooKeeper at {settings.quorum}: {path} has {found}, so {_who(settings)} may not do there what a JobManager "
        f"needs. {correct} to the user who has made it; or let that user remove it, if nobody needs it; or give the "
        f"cluster another {PATH_ROOT}"
    )


def not_for_us_alone(settings: HighAvailabilitySettings, path: str, acls: Sequence[ACL]) -> AccessDenied:
    return AccessDenied(
        f"ZooKeeper at {settings.quorum}: {path} has the ACL {_text(acls)}, and {CLIENT_ACL} is {CREATOR}, so others "
        f"could forge what is kept there. Give it an ACL for {_who(settings)} alone (setAcl), or remove it if nobody "
        f"needs it, or give the cluster another {PATH_ROOT}, or set {CLIENT_ACL} to {OPEN}"
    )


def _who(settings: HighAvailabilitySettings) -> str:
    if settings.auth_file:
        return f"the user of {settings.auth_file} ({settings.auth_scheme})"
    return f"the owner of {settings.cert_file}" if settings.cert_file else f"somebody without {AUTH_FILE}"


def _text(acls: Sequence[ACL]) -> str:
    """As zkCli writes them; what stands behind the name of a digest's user is a hash of the password."""
    return ", ".join(f"{acl.id.scheme}:{_name(acl)}:{_letters(acl.perms)}" for acl in acls)


def _name(acl: ACL) -> str:
    name: str = acl.id.id.partition(":")[0] if acl.id.scheme == "digest" else acl.id.id
    return name


def _letters(permissions: int) -> str:
    return "".join(letter for letter, bit in _LETTERS.items() if permissions & bit)
