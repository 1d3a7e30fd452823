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

_WINNERS = """SELECT a.*, b.price, b.date_time AS bid_date_time, b.bidder FROM auction a JOIN bid b
              ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
              QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) = 1"""

_TUMBLED = "time_bucket(INTERVAL 10 SECONDS, date_time, TIMESTAMP '1970-01-01')"
_HOT = """SELECT auction, count(*) AS num, pane + INTERVAL (2 * slide) SECONDS AS window_end FROM (
          SELECT auction, time_bucket(INTERVAL 2 SECONDS, date_time, TIMESTAMP '1970-01-01') AS pane FROM bid),
          range(1, 6) slides(slide) GROUP BY 1, 3"""

ANSWERS: Mapping[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, (0.908 * price)::DECIMAL(23, 3) AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
             WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"SELECT category, sum(price)::BIGINT // count(*) AS mean FROM ({_WINNERS}) GROUP BY 1",
    "q5": f"""SELECT window_end, auction, num FROM ({_HOT})
              QUALIFY num = max(num) OVER (PARTITION BY window_end)""",
    "q6": f"""SELECT seller, id AS auction, (sum(price) OVER latest)::BIGINT // count(*) OVER latest AS mean
              FROM ({_WINNERS}) WINDOW latest AS (
              PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)""",
    "q7": f"""SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (
              SELECT max(price) AS price, {_TUMBLED} + INTERVAL 10 SECONDS AS window_end FROM bid GROUP BY 2) w
              ON b.price = w.price AND b.date_time BETWEEN w.window_end - INTERVAL 10 SECONDS AND w.window_end""",
    "q8": f"""SELECT DISTINCT p.id, p.name, {_TUMBLED.replace("date_time", "p.date_time")} AS window_start
              FROM person p JOIN auction a ON p.id = a.seller
              AND {_TUMBLED.replace("date_time", "p.date_time")} = {_TUMBLED.replace("date_time", "a.date_time")}""",
    "q9": _WINNERS,
    "q10": """SELECT auction, bidder, price, date_time, extra, strftime(date_time, '%Y-%m-%d') AS dt,
              strftime(date_time, '%H:%M') AS hm FROM bid""",
    "q11": """SELECT bidder, count(*) AS bid_count, min(date_time) AS window_start,
              max(date_time) + INTERVAL 10 SECONDS AS window_end FROM (
              SELECT bidder, date_time, sum(is_new::INT) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM (
              SELECT bidder, date_time, coalesce(date_time - lag(date_time) OVER (PARTITION BY bidder
              ORDER BY date_time) > INTERVAL 10 SECONDS, true) AS is_new FROM bid)) GROUP BY bidder, session""",
    "q12": f"""SELECT bidder, count(*) AS bid_count, {_TUMBLED} AS window_start,
               {_TUMBLED} + INTERVAL 10 SECONDS AS window_end FROM bid GROUP BY 1, 3""",
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
    "q19": """SELECT auction, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number, price
              FROM bid QUALIFY rank_number <= 10""",
    "q20": """SELECT b.*, a.* EXCLUDE (id, date_time, extra), a.date_time AS auction_date_time, a.extra AS auction_extra
              FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": r"""SELECT * FROM (SELECT auction, bidder, price, channel,
               CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
               WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END
               AS channel_id FROM bid) WHERE channel_id IS NOT NULL""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
              split_part(url, '/', 6) AS dir3 FROM bid""",
    "q23": """SELECT b.auction, b.bidder, b.price, b.date_time, p.name, p.city, a.item_name, a.category
              FROM bid b JOIN person p ON b.bidder = p.id JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
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
    return table_of(connection, f"SELECT {', '.join(columns)} FROM ({ANSWERS[query]})")


def table_of(connection: Any, select: str) -> pa.Table:
    found: pa.Table = connection.sql(select).to_arrow_table()
    return found
