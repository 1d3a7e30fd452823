"""What can be wrong with something said.

MessageError
├── MalformedMessage      bytes that are no message: unknown tag, wrong type, too large, too deep
├── UnregisteredMessage   an object that was never declared with @message
└── UnsupportedValue      plain data of a type that the wire does not carry
"""

from __future__ import annotations


class MessageError(Exception):
    """Base of all errors of the wire."""


class MalformedMessage(MessageError):
    """These bytes are not a message of ours; the receiver counts it, logs the peer and goes on."""


class UnregisteredMessage(MessageError, TypeError):
    """A value was sent whose class is not a message; declare the class with `@message`."""


class UnsupportedValue(MessageError, TypeError):
    """A value holds a type that plain data does not know; the text says which and where."""
