"""A certificate of 127.0.0.1 that is its own authority, made by openssl: for servers that tests start with TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Certificate(NamedTuple):
    file: Path
    key: Path


def made_in(folder: Path) -> Certificate:
    certificate = Certificate(folder / "server.crt", folder / "server.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command += ["-keyout", str(certificate.key), "-out", str(certificate.file)]
    subprocess.run(command, check=True, capture_output=True)
    certificate.key.chmod(0o600)
    return certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return made_in(tmp_path_factory.mktemp("certificate"))
