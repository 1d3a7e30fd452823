"""The queries in Flink SQL, as published, for the same rows; see oracle.py for where one had to be changed.

The first columns of each are those that are compared, in the order of our Query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .model import SCHEMAS, STREAMS, Stream

EVENT_TIME = frozenset({"q5", "q7", "q8", "q11", "q12", "q18"})
"""Queries whose tables have a watermark; it costs the others nothing. Of q18 it makes a deduplication by event time."""

_RANKS = {
    "total": "",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
_COUNTS = ", ".join(
    f"COUNT({what}){f' FILTER (WHERE {rule})' if rule else ''} AS {rank}_{name}"
    for name, what in (("bids", "*"), ("bidders", "DISTINCT bidder"), ("auctions", "DISTINCT auction"))
    for rank, rule in _RANKS.items()
)
_DAY = "DATE_FORMAT(date_time, 'yyyy-MM-dd')"
_HOT = """SELECT auction, COUNT(*) AS num, window_start, window_end FROM TABLE(
          HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
          GROUP BY auction, window_start, window_end"""
_WINNING = "A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires"


def _tumbled(stream: str) -> str:
    return f"TABLE(TUMBLE(TABLE {stream}, DESCRIPTOR(date_time), INTERVAL '10' SECOND))"


SELECTS: Mapping[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
             WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": f"""SELECT category, AVG(final) FROM (SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
              WHERE {_WINNING} GROUP BY A.id, A.category) Q GROUP BY category""",
    "q5": f"""SELECT A.window_end, A.auction, A.num FROM ({_HOT}) AS A JOIN (
              SELECT MAX(num) AS maxn, window_start, window_end FROM ({_HOT}) GROUP BY window_start, window_end) AS M
              ON A.window_start = M.window_start AND A.window_end = M.window_end AND A.num >= M.maxn""",
    "q7": f"""SELECT B.auction, B.price, B.bidder, B.date_time, B.extra FROM bid B JOIN (
              SELECT MAX(price) AS maxprice, window_end AS date_time FROM {_tumbled("bid")}
              GROUP BY window_start, window_end) B1 ON B.price = B1.maxprice
              WHERE B.date_time BETWEEN B1.date_time - INTERVAL '10' SECOND AND B1.date_time""",
    "q8": f"""SELECT P.id, P.name, P.window_start FROM (SELECT id, name, window_start, window_end FROM
              {_tumbled("person")} GROUP BY id, name, window_start, window_end) AS P JOIN (
              SELECT seller, window_start, window_end FROM {_tumbled("auction")}
              GROUP BY seller, window_start, window_end) AS A
              ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end""",
    "q9": f"""SELECT id, price, bid_date_time, item_name, description, initial_bid, reserve, seller, category, extra,
              date_time, expires FROM (SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time,
              B.extra AS bid_extra, ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time ASC) AS n
              FROM auction A, bid B WHERE {_WINNING}) WHERE n <= 1""",
    "q10": f"""SELECT auction, bidder, price, date_time, extra, {_DAY}, DATE_FORMAT(date_time, 'HH:mm') FROM bid""",
    "q11": """SELECT bidder, COUNT(*) AS bid_count, window_start, window_end FROM TABLE(
              SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
              GROUP BY bidder, window_start, window_end""",
    "q12": f"""SELECT bidder, COUNT(*) AS bid_count, window_start, window_end FROM {_tumbled("bid")}
               GROUP BY bidder, window_start, window_end""",
    "q13": """SELECT B.auction, B.bidder, B.price, B.date_time, S.`value` FROM (SELECT *, PROCTIME() AS p FROM bid) B
              JOIN side_input FOR SYSTEM_TIME AS OF B.p AS S ON MOD(B.auction, 10000) = S.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
              CASE WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
                   WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS kind,
              date_time, extra, count_char(extra, 'c') AS counts
              FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT {_DAY} AS `day`, {_COUNTS} FROM bid GROUP BY {_DAY}",
    "q16": f"""SELECT channel, {_DAY} AS `day`, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS `minute`, {_COUNTS}
               FROM bid GROUP BY channel, {_DAY}""",
    "q17": f"""SELECT auction, {_DAY} AS `day`, COUNT(*) AS total_bids,
               COUNT(*) FILTER (WHERE {_RANKS["rank1"]}), COUNT(*) FILTER (WHERE {_RANKS["rank2"]}),
               COUNT(*) FILTER (WHERE {_RANKS["rank3"]}), MIN(price), MAX(price), AVG(price), SUM(price)
               FROM bid GROUP BY auction, {_DAY}""",
    "q18": """SELECT bidder, auction, date_time, price, channel, url, extra FROM (SELECT *, ROW_NUMBER() OVER (
              PARTITION BY bidder, auction ORDER BY date_time DESC) AS n FROM bid) WHERE n <= 1""",
    "q19": """SELECT auction, n, price, bidder, channel, url, date_time, extra FROM (SELECT *, ROW_NUMBER() OVER (
              PARTITION BY auction ORDER BY price DESC) AS n FROM bid) WHERE n <= 10""",
    "q20": """SELECT auction, bidder, price, channel, url, B.date_time, B.extra, item_name, description, initial_bid,
              reserve, A.date_time, expires, seller, category, A.extra
              FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 10""",
    "q21": """SELECT auction, bidder, price, channel, CASE WHEN LOWER(channel) = 'apple' THEN '0'
              WHEN LOWER(channel) = 'google' THEN '1' WHEN LOWER(channel) = 'facebook' THEN '2'
              WHEN LOWER(channel) = 'baidu' THEN '3'
              ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid
              WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
              OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1,
              SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid""",
    "q23": """SELECT B.auction, B.bidder, B.price, B.date_time, P.name, P.city, A.item_name, A.category
              FROM bid B JOIN person P ON B.bidder = P.id JOIN auction A ON B.auction = A.id
              WHERE A.category = 10""",
}
"""By name; q6 is not supported by Flink (FLINK-19059)."""

_INT, _TEXT, _TIME, _DECIMAL = "BIGINT", "STRING", "TIMESTAMP(3)", "DECIMAL(23, 3)"
_AUCTION = ["STRING", "STRING", "BIGINT", "BIGINT", "TIMESTAMP(3)", "TIMESTAMP(3)", "BIGINT", "BIGINT", "STRING"]
"""All but its id."""

RESULTS: Mapping[str, tuple[int, Sequence[str]]] = {
    "q0": (0, [_INT, _INT, _INT, _TIME, _TEXT]),
    "q1": (0, [_INT, _INT, _DECIMAL, _TIME, _TEXT]),
    "q2": (0, [_INT, _INT]),
    "q3": (0, [_TEXT, _TEXT, _TEXT, _INT]),
    "q4": (1, [_INT, _INT]),
    "q5": (0, [_TIME, _INT, _INT]),
    "q7": (0, [_INT, _INT, _INT, _TIME, _TEXT]),
    "q8": (0, [_INT, _TEXT, _TIME]),
    "q9": (1, [_INT, _INT, _TIME, _TEXT, _TEXT, _INT, _INT, _INT, _INT, _TEXT, _TIME, _TIME]),
    "q10": (0, [_INT, _INT, _INT, _TIME, _TEXT, _TEXT, _TEXT]),
    "q11": (0, [_INT, _INT, _TIME, _TIME]),
    "q12": (0, [_INT, _INT, _TIME, _TIME]),
    "q13": (0, [_INT, _INT, _INT, _TIME, _TEXT]),
    "q14": (0, [_INT, _INT, _DECIMAL, _TEXT, _TIME, _TEXT, _INT]),
    "q15": (1, [_TEXT, *[_INT] * 12]),
    "q16": (2, [_TEXT, _TEXT, _TEXT, *[_INT] * 12]),
    "q17": (2, [_INT, _TEXT, *[_INT] * 8]),
    "q18": (2, [_INT, _INT, _TIME, _INT, _TEXT, _TEXT, _TEXT]),
    "q19": (2, [_INT, _INT, _INT, _INT, _TEXT, _TEXT, _TIME, _TEXT]),
    "q20": (0, [_INT, _INT, _INT, _TEXT, _TEXT, _TIME, _TEXT, *_AUCTION]),
    "q21": (0, [_INT, _INT, _INT, _TEXT, _TEXT]),
    "q22": (0, [_INT, _INT, _INT, _TEXT, _TEXT, _TEXT, _TEXT]),
    "q23": (0, [_INT, _INT, _INT, _TIME, _TEXT, _TEXT, _TEXT, _INT]),
}
"""How many of the first columns are the key of updates (0: rows are only added), and the columns' types."""


def statements(query: str, raw: Path, out: Path, compared: int) -> list[str]:
    """What Flink runs: its tables, and last the INSERT. The first `compared` columns count in the answer."""
    keys, types = RESULTS[query]
    tables = [_source(stream, raw, out, event_time=query in EVENT_TIME) for stream in STREAMS]
    names = [f"c{position}" for position in range(len(types))]
    key = f", PRIMARY KEY ({', '.join(names[:keys])}) NOT ENFORCED" if keys else ""
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    options = f"'connector' = 'answer', 'out' = '{out}', 'keys' = '{keys}', 'compared' = '{compared}'"
    sink = f"CREATE TABLE answer ({columns}{key}) WITH ({options})"
    if query == "q10":
        sink = f"CREATE TABLE answer ({columns}) PARTITIONED BY (c5, c6) WITH ({_files(out)})"
    side = "CREATE TABLE side_input (`key` BIGINT, `value` STRING) WITH ('connector' = 'side-input')"
    function = "CREATE TEMPORARY FUNCTION count_char AS 'benchmarks.CountChar'"
    return [*tables, side, function, sink, f"INSERT INTO answer {SELECTS[query]}"]


def _files(out: Path) -> str:
    options = {
        "connector": "filesystem",
        "path": (out / "files").as_uri(),
        "format": "csv",
        "sink.partition-commit.policy.kind": "success-file",
        "sink.rolling-policy.rollover-interval": "1 min",
        "sink.rolling-policy.check-interval": "1 min",
    }
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


def _source(stream: Stream, raw: Path, out: Path, *, event_time: bool) -> str:
    kinds = {"int64": "BIGINT", "string": "STRING", "timestamp[ms]": "TIMESTAMP(3)"}
    columns = [f"{field.name} {kinds[str(field.type)]}" for field in SCHEMAS[stream]]
    if event_time:
        columns.append("WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND")
    path = (raw / stream).as_uri()
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'columns', 'columns.out' = '{out}'"
    return f"CREATE TABLE {stream} ({', '.join(columns)}) WITH ({options})"
