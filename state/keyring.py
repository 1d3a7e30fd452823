"""Encryption at rest: what the checkpoint storage writes is sealed with a key of the user's, and what it reads opened.

    file   = head, chunk, chunk ... last chunk          head = magic, key id, salt
    chunk  = AES-256-GCM(key of this file, nonce = its number and whether it is the last, 64 KiB or less, head)

The key of a file is HKDF-SHA256 of the user's key and the salt, so no nonce comes twice. A chunk that was changed,
moved, left out or cut off is noticed; what a whole older file in the place of a newer one says is not. This is the
STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizar 2015), with a key for each file as Tink's AES-GCM-HKDF has it.

Keys stand in a file, a line of base64 each; "#" begins a comment. The first seals; the others open what was written
before it came. Where sealed bytes lie is not at home here.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

from .errors import CorruptState, InvalidEncryptionKeys, WrongEncryptionKey

VARIABLE = "UNDERSTUDY_ENCRYPTION_KEYS"
"""Names the file with the keys, in each process that reads or writes state."""
KEY_BYTES = 32
CHUNK_BYTES = 64 * 1024
_HEAD = Struct(">8s8s16s")
HEAD_BYTES = _HEAD.size
TAG_BYTES = 16
SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES
_MAGIC = b"\x89USE1\r\n\x1a"
_NONCE = Struct(">3xQB")
_AROUND_A_KEY = " \t\ufeff"
"""An editor may begin the file with a mark of its encoding."""
_PURPOSE = b"understudy state at rest 1"


def is_sealed(data: bytes) -> bool:
    """Whether a file that begins so is encrypted."""
    return data.startswith(_MAGIC)


def key_id(key: bytes) -> str:
    """The name of a key in files and texts; it tells nothing about the key."""
    return blake2b(key, digest_size=8, person=b"understudy key").hexdigest()


def plain_size(sealed_bytes: int) -> int:
    """The size of what a sealed file of this size holds."""
    body = sealed_bytes - HEAD_BYTES
    return max(body - TAG_BYTES * -(-body // SEALED_CHUNK_BYTES), 0)


class Keyring:
    """The keys of a process. `source`: where they come from, for texts."""

    def __init__(
        self, keys: Sequence[bytes], source: str = "", *, new_salt: Callable[[], bytes] = lambda: os.urandom(16)
    ) -> None:
        _check_package(source)
        self._keys = {key_id(key): key for key in keys}
        self.current = key_id(keys[0])
        """The id of the key that seals."""
        self.source = source
        self._new_salt = new_salt

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Keyring | None:
        """That of the file that the environment names; None if it names none. Raises InvalidEncryptionKeys."""
        path = environment.get(VARIABLE)
        return cls(_read(path), path) if path else None

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all keys; the one that seals comes first."""
        return tuple(self._keys)

    def sealed(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a sealed file."""
        head = _HEAD.pack(_MAGIC, bytes.fromhex(self.current), self._new_salt())
        cipher = self._cipher(head, "")
        yield head
        number, held = 0, b""
        for block in _blocks(parts):
            if held:
                yield cipher.encrypt(_NONCE.pack(number, 0), held, head)
                number += 1
            held = block
        yield cipher.encrypt(_NONCE.pack(number, 1), held, head)

    def _cipher(self, head: bytes, path: str) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        _, wanted, salt = _HEAD.unpack(head)
        key = self._keys.get(wanted.hex())
        if key is None:
            raise WrongEncryptionKey(path, wanted.hex(), self.ids, self.source)
        return AESGCM(HKDF(SHA256(), KEY_BYTES, salt, _PURPOSE).derive(key))


class Opener:
    """Opens chunks of one sealed file, any of them. Raises CorruptState, WrongEncryptionKey."""

    def __init__(self, keys: Keyring | None, path: str, head: bytes) -> None:
        if len(head) < HEAD_BYTES:
            raise CorruptState(path, f"at least {HEAD_BYTES} bytes", f"{len(head)} bytes")
        if keys is None:
            raise WrongEncryptionKey(path, _HEAD.unpack(head)[1].hex(), (), "")
        self._cipher, self._head, self._path = keys._cipher(head, path), head, path

    def chunks(self, data: bytes, first: int, *, is_whole: bool = False) -> bytes:
        """What these sealed chunks hold; `first`: the number of the first. `is_whole`: they go to the file's end."""
        if is_whole and not data:
            raise CorruptState(self._path, f"more than {HEAD_BYTES} bytes", "the head of an encrypted file alone")
        view = memoryview(data)
        found = []
        for start in range(0, len(view), SEALED_CHUNK_BYTES):
            chunk = view[start : start + SEALED_CHUNK_BYTES]
            ends = start + SEALED_CHUNK_BYTES >= len(view)
            if ends and (is_whole or len(chunk) < SEALED_CHUNK_BYTES):
                may_be: tuple[int, ...] = (1,)
            else:
                may_be = (0, 1) if ends else (0,)
            found.append(self._chunk(chunk, first + start // SEALED_CHUNK_BYTES, may_be))
        return b"".join(found)

    def _chunk(self, chunk: memoryview, number: int, may_be: Sequence[int]) -> bytes:
        """`may_be`: whether it is the last one, as far as that is known."""
        from cryptography.exceptions import InvalidTag

        for is_last in may_be:
            try:
                data: bytes = self._cipher.decrypt(_NONCE.pack(number, is_last), chunk, self._head)
            except (InvalidTag, ValueError):  # a piece shorter than a tag
                continue
            return data
        where = f"from byte {HEAD_BYTES + number * SEALED_CHUNK_BYTES} on"
        raise CorruptState(self._path, "what its key has sealed", f"changed bytes {where}")


def opened(keys: Keyring | None, path: str, data: bytes) -> bytes:
    """What a whole sealed file holds. `path`: for texts. Raises CorruptState, WrongEncryptionKey."""
    return Opener(keys, path, data[:HEAD_BYTES]).chunks(data[HEAD_BYTES:], 0, is_whole=True)


def add_key(path: str) -> tuple[str, ...]:
    """Put a new key in front of those of the file, which is made if there is none; the ids, the new one first. Raises
    InvalidEncryptionKeys for a file that holds something else, which stays as it is.
    """
    key, earlier = os.urandom(KEY_BYTES), _read(path) if os.path.lexists(path) else []
    draft = f"{path}.{os.getpid()}"
    try:
        text = Path(path).read_bytes() if earlier else b""
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(base64.b64encode(key) + b"\n" + text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(draft)
        raise InvalidEncryptionKeys(path, f"the file cannot be written: {error.strerror or error}") from error
    return tuple(map(key_id, (key, *earlier)))


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in blocks of CHUNK_BYTES; the last one may be shorter."""
    held = bytearray()
    for part in parts:
        view = memoryview(part)
        while len(held) + len(view) >= CHUNK_BYTES:
            taken = CHUNK_BYTES - len(held)
            yield bytes(held + view[:taken])
            held.clear()
            view = view[taken:]
        held += view
    if held:
        yield bytes(held)


def _check_package(source: str) -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise InvalidEncryptionKeys(
            source, 'encryption needs the package cryptography: pip install "understudy[encryption]"'
        ) from error


def _read(path: str) -> list[bytes]:
    """Raises InvalidEncryptionKeys."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidEncryptionKeys(path, f"the file cannot be read: {why}") from error
    if mode & 0o077:
        raise InvalidEncryptionKeys(
            path, f"others can read it: wanted mode 0600, found {stat.S_IMODE(mode):04o}; chmod 600 {path}"
        )
    said = [(number, line.partition("#")[0].strip(_AROUND_A_KEY)) for number, line in enumerate(lines, 1)]
    keys = [_key(path, number, text) for number, text in said if text]
    if not keys:
        raise InvalidEncryptionKeys(path, "wanted a key of 32 bytes in base64 in each line, found none")
    if len(set(keys)) < len(keys):
        raise InvalidEncryptionKeys(path, "a key stands in it twice")
    return keys


def _key(path: str, number: int, text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        found = f"{len(key)} bytes" if key else "what is no base64"
        raise InvalidEncryptionKeys(path, f"line {number}: wanted 32 bytes in base64, found {found}")
    return key
