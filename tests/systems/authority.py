"""An authority of certificates, made for one run of the tests, by `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """Files in PEM form."""

    certificate: Path
    key: Path


class Authority:
    """`certificate`: the file by which others trust it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(self._name, self._key, 1).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.certificate = folder / f"{name}.crt"
        self.certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def issue(self, name: str, days: int = 1, password: str = "") -> Issued:
        """For 127.0.0.1. With days below 0 it has expired since yesterday; with a password, its key is encrypted."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, days)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        issued = Issued(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        issued.certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        issued.key.write_bytes(_key_pem(key, password))
        issued.key.chmod(0o600)
        return issued

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3 * _DAY)
            .not_valid_after(now + days * _DAY)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey, password: str) -> bytes:
    how: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        how = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
