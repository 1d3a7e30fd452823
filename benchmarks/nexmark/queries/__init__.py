"""The queries with the public API, by what they need: nothing kept, totals, ranks, winning bids, joins, windows."""

from __future__ import annotations

from ..query import Query
from . import joins, projections, ranks, totals, windows, winners

_ALL = (*projections.QUERIES, *totals.QUERIES, *ranks.QUERIES, *joins.QUERIES, *windows.QUERIES, *winners.QUERIES)

QUERIES: dict[str, Query] = {query.name: query for query in sorted(_ALL, key=lambda query: int(query.name[1:]))}
"""By name, q0 to q23."""
