"""A user's serializer makes instances of its type plain data; whatever is wrong with it is said by name."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from understudy.messages import (
    MalformedMessage,
    Serializer,
    UnsupportedValue,
    find_serializer,
    pack_plain,
    register_serializer,
    unpack_plain,
)

from .samples import Point, Trade


class Image:
    def __init__(self, pixels: str) -> None:
        self.pixels = pixels


class Photo(Image):
    pass


class Pixels:
    name = "pixels"
    version = 2
    type = Image

    def serialize(self, value: Image) -> bytes:
        return value.pixels.encode()

    def deserialize(self, data: bytes, version: int) -> Image:
        return Image(f"{data.decode()} {version}")


def sent(*parts: Any) -> Any:
    return unpack_plain(msgpack.packb(msgpack.ExtType(15, msgpack.packb(list(parts)))))


def test_instances_travel_once_their_serializer_is_registered() -> None:
    with pytest.raises(UnsupportedValue, match=r"Image cannot be sent.*understudy\.register_serializer"):
        pack_plain([Image("a")])
    register_serializer(Pixels())
    (back,) = unpack_plain(pack_plain([Image("a")]))
    assert (type(back), back.pixels) == (Image, "a 2")


def test_a_subclass_travels_by_the_serializer_of_its_base() -> None:
    register_serializer(Pixels())
    assert type(unpack_plain(pack_plain(Photo("a")))) is Image


def test_a_serializer_takes_over_a_class_that_travels_by_name() -> None:
    class Short(Pixels):
        type = Trade

        def serialize(self, value: Trade) -> bytes:
            return value.symbol.encode()

    register_serializer(Short())
    assert unpack_plain(pack_plain(Trade("A", 1.0))).pixels == "A 2"


def test_a_later_serializer_of_the_name_replaces_the_earlier_one() -> None:
    class OfPoints(Pixels):
        type = Point

    register_serializer(Pixels())
    register_serializer(OfPoints())
    with pytest.raises(UnsupportedValue, match="Image"):
        pack_plain(Image("a"))
    assert isinstance(find_serializer("pixels"), OfPoints)


class _PixelsInAnyVersion(Pixels):
    def deserialize(self, data: bytes, version: int) -> Image:
        return Image(f"{data.decode()} of version {version}")


def test_what_an_earlier_version_wrote_is_read() -> None:
    old, new = _PixelsInAnyVersion(), _PixelsInAnyVersion()
    old.version, new.version = 1, 3
    register_serializer(old)
    written = pack_plain(Image("red"))
    register_serializer(new)
    assert unpack_plain(written).pixels == "red of version 1"
    newer = pack_plain(Image("red"))
    register_serializer(old)
    with pytest.raises(MalformedMessage, match="is of version 1 here, and version 3 wrote this"):
        unpack_plain(newer)


def test_a_serializer_that_raises_or_returns_no_bytes_is_named() -> None:
    class Bad(Pixels):
        def serialize(self, value: Image) -> Any:
            return value.pixels[0]

    register_serializer(Bad())
    with pytest.raises(UnsupportedValue, match=r"at \[0\]: serializer 'pixels': serialize returned a str, not bytes"):
        pack_plain([Image("a")])
    with pytest.raises(UnsupportedValue, match=r"serializer 'pixels' cannot write a .*Image: IndexError"):
        pack_plain(Image(""))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("png", 1, b""), "no serializer 'png' is registered here; registered are: 'pixels'"),
        (("pixels", 3, b""), "is of version 2 here, and version 3 wrote this"),
        (("pixels", 2, b"\xff"), "cannot read this: UnicodeDecodeError"),
        (("pixels", 2, "text"), "wanted the name and version"),
        (("pixels", "2", b""), "wanted the name and version"),
        ((["pixels"], 2, b""), "wanted the name and version"),
        ((), "not plain data"),
    ],
)
def test_what_no_serializer_can_read_is_malformed(parts: tuple[Any, ...], text: str) -> None:
    register_serializer(Pixels())
    with pytest.raises(MalformedMessage, match=text):
        sent(*parts)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name": ""}, "wanted a name"),
        ({"version": "1"}, "an integer version"),
        ({"type": "Image"}, "type of serializer 'pixels' is a class"),
        ({"type": int}, "an int needs no serializer"),
        ({"type": object}, "needs no serializer"),
        ({"serialize": None}, "wanted an instance with name, version"),
    ],
)
def test_what_is_no_serializer_is_refused(changes: dict[str, Any], text: str) -> None:
    serializer: Serializer = type("Changed", (Pixels,), changes)()
    with pytest.raises(TypeError, match=text):
        register_serializer(serializer)


def test_a_class_in_place_of_an_instance_is_refused() -> None:
    with pytest.raises(TypeError, match="wanted an instance"):
        register_serializer(Pixels)  # type: ignore[arg-type]
