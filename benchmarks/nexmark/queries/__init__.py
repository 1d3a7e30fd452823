"""The queries with the public API, by what they need: nothing kept, totals, ranks, joins, windows."""

from __future__ import annotations

from ..query import Query
from . import projections, ranks, totals

QUERIES: dict[str, Query] = {query.name: query for module in (projections, totals, ranks) for query in module.QUERIES}
"""By name, q0 to q23."""
