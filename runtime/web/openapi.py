"""The OpenAPI description of the REST interface, made of its routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .routes import Route

Json = dict[str, Any]


def describe(routes: Iterable[Route], version: str) -> Json:
    """OpenAPI 3.1."""
    paths: dict[str, Json] = {}
    for each in routes:
        paths.setdefault(re.sub(r":(\w+)", r"{\1}", each.path), {})[each.method.lower()] = _operation(each)
    errors: Json = {
        "type": "object",
        "required": ["errors"],
        "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Understudy",
            "version": version,
            "description": "Apache Flink's REST API (v1), as far as it applies. The same paths are below /v1.",
        },
        "servers": [{"url": "."}],
        "paths": paths,
        "components": {
            "schemas": {"Errors": errors},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> Json:
    def parameter(name: str, where: str) -> Json:
        return {"name": name, "in": where, "required": where == "path", "schema": {"type": "string"}}

    parameters = [parameter(name, "path") for name in route.parameters]
    refused = {"description": "What is wrong", "content": _content({"$ref": "#/components/schemas/Errors"})}
    done = "202" if route.method in ("POST", "PATCH") else "200"
    operation: Json = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', route.path)}",
        "responses": {done: {"description": "Done", "content": _content({})}, "4XX": refused, "503": refused},
    }
    if route.method == "POST":
        fields = {name: {"type": ["string", "boolean", "null"]} for name in route.takes}
        operation["requestBody"] = {"content": _content({"type": "object", "properties": fields})}
    else:
        parameters += [parameter(name, "query") for name in route.takes]
    return operation | ({"parameters": parameters} if parameters else {})


def _content(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}
