"""Messages as bytes: msgpack of `[tag, {field: value}]`.

Decoding trusts nothing: size and depth are bounded, and whatever is wrong with the bytes is a `MalformedMessage` that
says what was found where. Encoding keeps to the same bounds, so what can be sent can be read.
"""

from __future__ import annotations

from typing import Any, NoReturn

import msgpack

from .errors import MalformedMessage, MessageError, MessageTooLarge, UnsupportedValue
from .fields import from_wire, to_wire
from .registry import tag_of
from .usual_fields import usual_from_wire, usual_to_wire

_Packer, _unpackb = msgpack.Packer, msgpack.unpackb

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A larger control message is refused on both sides; bulk data goes through channels and storage."""

MAX_DEPTH = 32
"""Nesting of maps and lists; deeper bytes are refused before anything is built from them."""

_CONTAINERS = {list, tuple, dict}


def encode(value: object) -> bytes:
    """One message to bytes. Raises UnregisteredMessage, UnsupportedValue or MessageTooLarge."""
    try:
        data: bytes = _Packer().pack(usual_to_wire(value, MAX_DEPTH))
    except Exception:  # noqa: BLE001  (whatever is unusual about the message, the thorough way says what is wrong)
        return encode_thoroughly(value)
    return data if len(data) <= MAX_MESSAGE_BYTES else _too_large(value, data)


def decode(data: bytes) -> Any:
    """Bytes to one message; every failure is a MalformedMessage that says what was found."""
    if len(data) <= MAX_MESSAGE_BYTES:
        try:
            raw = _unpackb(data, strict_map_key=False, object_pairs_hook=tuple, unicode_errors="surrogatepass")
            return usual_from_wire(raw, MAX_DEPTH)
        except Exception:  # noqa: BLE001  (whatever is unusual about the bytes, the thorough way judges it)
            pass  # and not from in here: its errors would carry this one along
    return decode_thoroughly(data)


def encode_thoroughly(value: object) -> bytes:
    """`encode` without its short cut.

    Messages inside plain data go this way, so that a flaw deep inside is met once, and not twice at every level.
    """
    tag = tag_of(value)
    try:
        raw = to_wire(value)
        data = _pack(raw)
    except MessageError:
        raise
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnsupportedValue(f"this {tag} cannot be sent: {error}") from error
    if _is_too_deep(raw):
        raise UnsupportedValue(f"this {tag} cannot be sent: it is nested deeper than {MAX_DEPTH}")
    return data if len(data) <= MAX_MESSAGE_BYTES else _too_large(value, data)


def decode_thoroughly(data: bytes) -> Any:
    """`decode` without its short cut."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"{len(data)} bytes; the limit is {MAX_MESSAGE_BYTES}")
    try:
        raw = msgpack.unpackb(data, strict_map_key=False, object_pairs_hook=_map, unicode_errors="surrogatepass")
    except (ValueError, TypeError, OverflowError, MemoryError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"not msgpack: {error or type(error).__name__}") from error
    if _is_too_deep(raw):
        raise MalformedMessage(f"nested deeper than {MAX_DEPTH}")
    try:
        return from_wire(raw)
    except UnsupportedValue as error:  # a class declared here with fields that no message can have
        raise MalformedMessage(str(error)) from error


def _too_large(value: object, data: bytes) -> NoReturn:
    raise MessageTooLarge(f"{tag_of(value)} has {len(data)} bytes; the limit is {MAX_MESSAGE_BYTES}")


def _pack(raw: list[Any]) -> bytes:
    try:
        return msgpack.packb(raw)  # type: ignore[no-any-return]
    except UnicodeEncodeError:  # half a surrogate pair, as Python makes of a file name that is no text
        return msgpack.packb(raw, unicode_errors="surrogatepass")  # type: ignore[no-any-return]


def _map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a map holds one key twice")
    return made


def _is_too_deep(raw: Any) -> bool:
    level = [raw] if type(raw) in _CONTAINERS else []
    depth = 0
    while level and depth < MAX_DEPTH:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) in _CONTAINERS
        ]
    return bool(level)
