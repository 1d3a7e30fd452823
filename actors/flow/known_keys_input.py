"""KnownKeysInput: the consumer's end of a channel that brings partials, some of them by the numbers of their keys."""

from __future__ import annotations

from collections.abc import Callable

from ...messages import MalformedMessage
from ...state.columnar.known_rows import KnownKeys
from ...state.columns.numbered_rows import NamedRows, NumberedRows
from ..errors import ChannelBroken
from .channels import InputChannel
from .elements import Element


class KnownKeysInput:
    """`make_keys`: what the consumer knows of keys, beginning with the first rows that name any."""

    def __init__(self, channel: InputChannel, make_keys: Callable[[NamedRows], KnownKeys]) -> None:
        self._channel = channel
        self._make_keys = make_keys
        self._keys: KnownKeys | None = None

    def poll(self) -> Element | None:
        element = self._channel.poll()
        if not isinstance(element, NamedRows | NumberedRows):
            return element
        try:
            if isinstance(element, NamedRows) and element.first == 0:
                self._keys = self._make_keys(element)
            if self._keys is None:
                raise MalformedMessage("rows by number came before any key was named")
            return self._keys.receive(element)
        except (MalformedMessage, ValueError) as error:
            raise ChannelBroken(f"rows whose keys have numbers cannot be read: {error}") from error

    @property
    def bytes_passed(self) -> int:
        return self._channel.bytes_passed

    @property
    def usage(self) -> float:
        return self._channel.usage

    def close(self) -> None:
        self._keys = None
        self._channel.close()
