"""Do values that were written under one schema fit a state that is declared with another? The one place that says so.

Schemas are plain data, so the question can be put where the user's classes are not: at submit, about a savepoint. What
decodes a snapshot asks the same question, so the two cannot disagree.

A value fits as it is, or is converted (bool -> int -> float, T -> Optional[T], anything plain -> Any, records that
gained fields with defaults, lost fields, or whose fields or class were renamed; by a function of the user's), or does
not fit. What was stored without a type, as Any, is looked at value by value when it is read. Flink:
TypeSerializerSchemaCompatibility.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .type_texts import one_spelling

Schema: TypeAlias = Any
"""Plain data: a type's name, or a map that says `list`, `map`, `optional`, `record`, `enum`, `serializer`, `ttl`,
`made by` or `migrates`.
"""


class SchemaMismatch(Exception):
    """Values written under the stored schema cannot become values of the declared type; the text says why."""


WIDENED = frozenset({("bool", "int"), ("bool", "float"), ("int", "float")})
"""(stored, declared): plain types that become others without loss."""


def is_untyped(stored: Schema) -> bool:
    """Whether nothing is known of the values: they were stored as Any."""
    return stored in ("Any", "object")


def schema_text(schema: Schema) -> str:
    """A schema as a person would write the type."""
    match schema:
        case str():
            return schema
        case {"list": inner}:
            return f"list[{schema_text(inner)}]"
        case {"map": [key, value]}:
            return f"dict[{schema_text(key)}, {schema_text(value)}]"
        case {"optional": inner}:
            return f"{schema_text(inner)} | None"
        case {"record": name, "fields": inner}:
            return f"{name}({', '.join(f'{field}: {schema_text(kind)}' for field, kind in inner.items())})"
        case {"serializer": name, "type": kind, "version": version}:
            return f"{kind} by serializer {name!r} version {version}"
        case {"enum": name}:
            return str(name)
        case {"made by": _, "values": inner} | {"migrates": _, "values": inner}:
            return schema_text(inner)
        case {"ttl": inner, "clock": clock}:
            return f"{schema_text(inner)} with a TTL by {clock} time"
    return repr(schema)


def misfit(declared: Schema, stored: Schema) -> str:
    """Why values written under `stored` cannot become values of `declared`; empty if they can."""
    match declared, stored:
        case _, {"ttl": inner} | {"migrates": _, "values": inner}:
            return misfit(declared, inner)
        case {"migrates": earlier, "values": inner}, _:
            problem = misfit(inner, stored)
            return problem and (problem if all(misfit(each, stored) for each in earlier) else "")
        case {"made by": rules, "values": inner}, _:
            return _rules_misfit(rules, stored) or misfit(inner, values_of(stored))
        case {"list": item}, str() if is_untyped(stored):
            return misfit(item, stored)
        case {"map": [key, value]}, str() if is_untyped(stored):
            return misfit(key, stored) or misfit(value, stored)
        case ((str() | {"record": _} | {"enum": _}), str()) if is_untyped(stored):
            return ""
        case str(), str():
            return "" if _fits_plainly(declared, stored) else _refused(declared, stored)
        case {"list": item}, {"list": stored_item}:
            return misfit(item, stored_item)
        case {"map": [key, value]}, {"map": [stored_key, stored_value]}:
            return misfit(key, stored_key) or misfit(value, stored_value)
        case {"optional": inner}, {"optional": stored_inner}:
            return misfit(inner, stored_inner)
        case {"optional": inner}, _:
            return misfit(inner, stored)
        case {"enum": name}, {"enum": stored_name} if name == stored_name:
            return ""
        case {"serializer": name, "version": version}, {"serializer": stored_name, "version": written}:
            if name == stored_name:
                return "" if written <= version else f"version {written} is newer than {version}"
        case {"record": name}, {"record": stored_name} if stored_name in (name, *former_names(declared, CLASS)):
            return _record_misfit(declared, stored)
    return _refused(declared, stored)


def _fits_plainly(declared: str, stored: str) -> bool:
    is_same = one_spelling(stored) == one_spelling(declared)
    return is_same or (stored, declared) in WIDENED or is_untyped(declared)


def values_of(stored: Schema) -> Schema:
    """The schema of the values themselves, without what they were made by."""
    return stored["values"] if isinstance(stored, dict) and "made by" in stored else stored


def _rules_misfit(declared: dict[str, str], stored: Schema) -> str:
    """The rules that were others when the values were made. Values that do not say what made them, or do not know a
    rule, fit any.
    """
    if not isinstance(stored, dict) or "made by" not in stored:
        return ""
    made_by = stored["made by"]
    others = [
        f"{what}: stored {made_by[what]}, wanted {rule}"
        for what, rule in declared.items()
        if made_by.get(what, rule) != rule
    ]
    return "; ".join(others)


def _record_misfit(declared: dict[str, Any], stored: dict[str, Any]) -> str:
    kept = stored["fields"]
    for name, schema in declared["fields"].items():
        if (there := stored_field(declared, stored, name)) is not None:
            if problem := misfit(schema, kept[there]):
                return f"field {name!r}: {problem}"
        elif name not in declared.get("defaults", ()):
            return f"field {name!r} is new and has no default: give it one, or its former name in __formerly__"
    return ""


CLASS = "class"
"""Among the former names of a record's fields: those of the class. No field can be called so."""


def former_names(declared: dict[str, Any], what: str) -> tuple[str, ...]:
    """What a record says that this field, or CLASS, was called before."""
    found = declared.get("formerly", {}).get(what, ())
    return tuple(found)


def stored_field(declared: dict[str, Any], stored: dict[str, Any], name: str) -> str | None:
    """The name of the stored field that becomes this one; None if there is none."""
    kept = stored["fields"]
    names = (name, *(each for each in former_names(declared, name) if each not in declared["fields"]))
    return next((each for each in names if each in kept), None)


def are_same(one: Schema, other: Schema) -> bool:
    """Whether values are written alike under both. A record is the list of its fields' values, so of those the order
    counts, which equal dicts may not have.
    """
    return bool(one == other) and not is_converted(one, other)


def is_converted(declared: Schema, stored: Schema) -> bool:
    """Whether values that fit become other ones: they are migrated, and not taken over as they are."""
    return bool(_essence(declared) != _essence(stored))


def _essence(schema: Schema) -> Schema:
    """What decides over the stored form of values."""
    match schema:
        case str():
            return one_spelling(schema)
        case {"ttl": inner} | {"values": inner}:
            return _essence(inner)
        case {"record": name, "fields": fields}:
            return [name, [(field, _essence(each)) for field, each in fields.items()]]
        case {"enum": name}:
            return ["enum", name]
        case {"list": inner}:
            return ["list", _essence(inner)]
        case {"optional": inner}:
            return ["optional", _essence(inner)]
        case {"map": [key, value]}:
            return ["map", _essence(key), _essence(value)]
    return schema


def _refused(declared: Schema, stored: Schema) -> str:
    return f"{schema_text(stored)} does not become {schema_text(declared)}"
