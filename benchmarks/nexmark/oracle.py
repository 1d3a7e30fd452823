"""The right answers: the same queries as batches in SQL, for DuckDB over the files of a dataset.

Views `bid`, `auction`, `person` and `side_input` are the streams. A query of updates gives what is left when all have
been applied. Times of windows are those of their starts and ends. docs/nexmark.md says how ties are broken, and where a
query differs from the published one and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from .model import STREAMS

_RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
_COUNTS = ", ".join(
    f"count({what}) FILTER ({rule}) AS {rank}_{name}"
    for name, what in (("bids", "*"), ("bidders", "DISTINCT bidder"), ("auctions", "DISTINCT auction"))
    for rank, rule in _RANKS.items()
)

ANSWERS: Mapping[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q10": """SELECT auction, bidder, price, date_time, extra, strftime(date_time, '%Y-%m-%d') AS dt,
              strftime(date_time, '%H:%M') AS hm FROM bid""",
    "q13": """SELECT auction, bidder, price, date_time, value
              FROM bid JOIN side_input ON auction % 10000 = key""",
    "q14": """SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price,
              CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
                   WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS kind,
              date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS counts
              FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT strftime(date_time, '%Y-%m-%d') AS day, {_COUNTS} FROM bid GROUP BY 1",
    "q16": f"""SELECT channel, strftime(date_time, '%Y-%m-%d') AS day, max(strftime(date_time, '%H:%M')) AS minute,
               {_COUNTS} FROM bid GROUP BY 1, 2""",
    "q17": """SELECT auction, strftime(date_time, '%Y-%m-%d') AS day, count(*) AS total_bids,
              count(*) FILTER (price < 10000) AS rank1_bids,
              count(*) FILTER (price >= 10000 AND price < 1000000) AS rank2_bids,
              count(*) FILTER (price >= 1000000) AS rank3_bids,
              min(price) AS min_price, max(price) AS max_price, sum(price)::BIGINT // count(*) AS avg_price,
              sum(price)::BIGINT AS sum_price FROM bid GROUP BY 1, 2""",
    "q18": "SELECT bidder, auction, epoch_ms(max(date_time)) AS time_ms FROM bid GROUP BY 1, 2",
    "q21": r"""SELECT * FROM (SELECT auction, bidder, price, channel,
               CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
               WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END
               AS channel_id FROM bid) WHERE channel_id IS NOT NULL""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
              split_part(url, '/', 6) AS dir3 FROM bid""",
}
"""By name, one SELECT each."""


def connect(folder: Path, threads: int = 2) -> Any:
    """A connection that has the views."""
    connection = duckdb.connect(config={"threads": threads})
    for name in (*STREAMS, "side_input"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")
    return connection


def answer_of(connection: Any, query: str, columns: Iterable[str] = ("*",)) -> pa.Table:
    """The rows of a query, in no order."""
    found: pa.Table = connection.sql(f"SELECT {', '.join(columns)} FROM ({ANSWERS[query]})").to_arrow_table()
    return found
