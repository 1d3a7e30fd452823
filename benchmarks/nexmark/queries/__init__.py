"""The queries with the public API, by what they need: nothing kept, totals, ranks, winning bids, joins, windows."""

from __future__ import annotations

from ..query import Query
from . import projections, ranks, totals, winners

QUERIES: dict[str, Query] = {
    query.name: query for module in (projections, totals, ranks, winners) for query in module.QUERIES
}
"""By name, q0 to q23."""
