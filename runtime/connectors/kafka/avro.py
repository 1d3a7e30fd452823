"""AvroFormat: values in Avro, with a schema that both sides know, or with one from a schema registry.

With a registry each message begins with a zero and the schema's number, four bytes, as Confluent's serializers write
it, and the schema that it was written with is fetched once. Without one, a message is the bare datum. Needs fastavro.
The registry's client here has the two calls that this takes; others, as subjects' compatibility, are not at home here.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.flow.map_columns import with_dicts
from ....actors.flow.records import mapping_of
from ....messages import dict_rows
from ..errors import check_extra, require
from .errors import KafkaRefused, KafkaUnavailable

_HEAD = struct.Struct(">bI")
_WAIT_S = 20.0


class AvroFormat:
    """`schema`: as a dict, a list or JSON text; to write it is needed, to read with a `registry` it is not.

    If it is given to read with a registry, records are converted to it by Avro's rules. `registry`: its URL, with the
    user and password in it if it wants them. `subject`: under which the written schema is put down, as "orders-value".
    """

    def __init__(self, schema: Any = None, *, registry: str | None = None, subject: str | None = None) -> None:
        check_extra("fastavro", extra="kafka", wanted_by="AvroFormat")
        if schema is None and registry is None:
            raise ValueError("AvroFormat: wanted a schema, a registry, or both")
        if schema is not None and registry is not None and subject is not None and not subject:
            raise ValueError("subject: wanted a name, found ''")
        self._given = json.loads(schema) if isinstance(schema, str) else schema
        self._registry, self._subject = registry, subject
        self._parsed: Any = None
        self._written: dict[int, Any] = {}
        """Schemas of the registry by number."""
        self._number: int | None = None

    def __repr__(self) -> str:
        return f"AvroFormat({'schema' if self._given is not None else 'registry'})"

    def decode(self, values: list[bytes]) -> Batch:
        """Records as DictRows. Raises KafkaUnavailable and KafkaRefused for the registry, and what fastavro does."""
        fastavro = require("fastavro", extra="kafka", wanted_by="AvroFormat")
        wanted = self._schema()
        if self._registry is None:
            return dict_rows([fastavro.schemaless_reader(io.BytesIO(value), wanted, None) for value in values])
        records = []
        for value in values:
            if len(value) < _HEAD.size or value[0] != 0:
                raise ValueError("wanted a message with the number of its schema (a zero, and four bytes)")
            stream = io.BytesIO(value)
            _, number = _HEAD.unpack(stream.read(_HEAD.size))
            records.append(fastavro.schemaless_reader(stream, self._schema_of(number), wanted))
        return dict_rows(records)

    def encode(self, batch: Batch) -> list[bytes]:
        """Raises ValueError without a schema, and what fastavro does for a record that does not fit it."""
        fastavro = require("fastavro", extra="kafka", wanted_by="AvroFormat")
        wanted = self._schema()
        if wanted is None:
            raise ValueError("AvroFormat: to write, a schema is needed")
        head = b"" if self._registry is None else _HEAD.pack(0, self._put_down())
        rows = with_dicts(batch) if isinstance(batch, pa.RecordBatch) else map(mapping_of, batch)
        values = []
        for row in rows:
            stream = io.BytesIO()
            stream.write(head)
            fastavro.schemaless_writer(stream, wanted, row)
            values.append(stream.getvalue())
        return values

    def _schema(self) -> Any:
        if self._parsed is None and self._given is not None:
            self._parsed = require("fastavro", extra="kafka", wanted_by="AvroFormat").parse_schema(self._given)
        return self._parsed

    def _schema_of(self, number: int) -> Any:
        if number not in self._written:
            fastavro = require("fastavro", extra="kafka", wanted_by="AvroFormat")
            found = self._ask(f"/schemas/ids/{number}")
            self._written[number] = fastavro.parse_schema(json.loads(found["schema"]))
        return self._written[number]

    def _put_down(self) -> int:
        if self._number is None:
            if not self._subject:
                raise ValueError("AvroFormat: to write with a registry, a subject is needed, such as 'orders-value'")
            subject = urllib.parse.quote(self._subject, safe="")
            answer = self._ask(f"/subjects/{subject}/versions", {"schema": json.dumps(self._given)})
            self._number = int(answer["id"])
        return self._number

    def _ask(self, path: str, content: Mapping[str, str] | None = None) -> dict[str, Any]:
        assert self._registry is not None
        url = urllib.parse.urlsplit(self._registry)
        bare = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl().rstrip("/")
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if url.username is not None:
            login = f"{urllib.parse.unquote(url.username)}:{urllib.parse.unquote(url.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(bare + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            said = error.read(300).decode(errors="replace")
            kind = KafkaRefused if error.code < 500 else KafkaUnavailable
            raise kind(f"schema registry {bare}{path}: HTTP {error.code}: {said}") from None
        except (OSError, ValueError) as error:
            raise KafkaUnavailable(f"schema registry {bare}{path}: {error}") from error
