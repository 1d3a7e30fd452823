"""A failure as Flink's Java clients read it: a serialised SerializedThrowable, made without Java.

Its bytes are those of an instance that Java has written, with two texts to be replaced. In Java's serialisation a text
is a byte 0x74, its length in two bytes, and its UTF-8; nothing else depends on the length.
"""

from __future__ import annotations

import base64
from typing import Any

CLASS = "understudy.Refused"
LONGEST = 60_000
"""Bytes of one text: its length has two."""
_WRITTEN = base64.b64decode(
    "rO0ABXNyAClvcmcuYXBhY2hlLmZsaW5rLnV0aWwuU2VyaWFsaXplZFRocm93YWJsZWUWnfUfpxPzAgADTAAZZnVsbFN0cmluZ2lm"
    "aWVkU3RhY2tUcmFjZXQAEkxqYXZhL2xhbmcvU3RyaW5nO0wAFm9yaWdpbmFsRXJyb3JDbGFzc05hbWVxAH4AAVsAE3NlcmlhbGl6"
    "ZWRFeGNlcHRpb250AAJbQnhyABNqYXZhLmxhbmcuRXhjZXB0aW9u0P0fPho7HMQCAAB4cgATamF2YS5sYW5nLlRocm93YWJsZdXG"
    "NSc5d7jLAwAETAAFY2F1c2V0ABVMamF2YS9sYW5nL1Rocm93YWJsZTtMAA1kZXRhaWxNZXNzYWdlcQB+AAFbAApzdGFja1RyYWNl"
    "dAAeW0xqYXZhL2xhbmcvU3RhY2tUcmFjZUVsZW1lbnQ7TAAUc3VwcHJlc3NlZEV4Y2VwdGlvbnN0ABBMamF2YS91dGlsL0xpc3Q7"
    "eHBwdAAJQE1FU1NBR0VAdXIAHltMamF2YS5sYW5nLlN0YWNrVHJhY2VFbGVtZW50OwJGKjw8/SI5AgAAeHAAAAAAc3IAH2phdmEu"
    "dXRpbC5Db2xsZWN0aW9ucyRFbXB0eUxpc3R6uBe0PKee3gIAAHhweHQAB0BTVEFDS0B0ABJ1bmRlcnN0dWR5LlJlZnVzZWRw"
)


def failure_cause(text: str) -> dict[str, Any]:
    """Flink: SerializedThrowableSerializer."""
    written = _WRITTEN
    for mark in ("@MESSAGE@", "@STACK@"):
        written = written.replace(_text(mark), _text(text))
    encoded = base64.b64encode(written).decode()
    return {"class": CLASS, "stack-trace": text, "serialized-throwable": encoded}


def _text(text: str) -> bytes:
    """Characters that Java encodes in another way than UTF-8 are replaced."""
    plain = "".join(each if "\0" < each <= "\uffff" and not "\ud800" <= each <= "\udfff" else "?" for each in text)
    data = plain.encode()[:LONGEST].decode(errors="ignore").encode()
    return b"\x74" + len(data).to_bytes(2, "big") + data
