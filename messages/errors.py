"""What can be wrong with something said.

MessageError
├── MalformedMessage      bytes that are no message: unknown tag, wrong type, too large, too deep
├── MessageTooLarge       a message of more bytes than any peer would take
├── UnregisteredMessage   an object that was never declared with @message
└── UnsupportedValue      a message or plain data that holds what the wire does not carry
"""

from __future__ import annotations


class MessageError(Exception):
    """Base of all errors of the wire."""


class MalformedMessage(MessageError):
    """These bytes are not a message of ours; the receiver counts it, logs the peer and goes on."""


class MessageTooLarge(MessageError, ValueError):
    """Bulk data was put into a control message; it goes through channels and storage instead."""


class UnregisteredMessage(MessageError, TypeError):
    """A value was sent whose class is not a message; declare the class with `@message`."""


class UnsupportedValue(MessageError, TypeError):
    """A value of a type that is not carried, or nested too deep; the text says which and where."""
