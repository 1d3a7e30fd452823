"""Named aggregates of a keyed stream: the operator of `aggregate(flights=Count(), miles=Sum("distance"))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...actors.operators.aggregate import ColumnarAggregate
from ...state.kinds.aggregates import Aggregate, misgiven
from .errors import InvalidProgram
from .joins import Keyed
from .known_options import Options, check_results
from .samples import check_columns, check_types
from .schemas import key_columns


def by_itself(column: str, keys: Sequence[Any], *more: str) -> str:
    """About a column that somebody gives to `aggregate` as what to group by. `more`: other columns of each row."""
    own = [key for key in keys if isinstance(key, str)]
    has = " and ".join(filter(None, [f"the key ({', '.join(map(repr, own))})" if own else "the key", ", ".join(more)]))
    text = f"Each row has {has} in any case: leave {column!r:.80} out"
    if column in own:
        return text
    return f"{text}; to group by a column of that name, write key_by({', '.join(map(repr, (*own, column)))})"


def named_aggregates(stream: Keyed, emit: str | None, usual: str, specs: dict[str, Any]) -> ColumnarAggregate:
    """`usual`: when it emits if nothing is said. Raises InvalidProgram, and what its checks of the columns raise."""
    if emit not in (None, "end", "updates"):
        if specs and isinstance(emit, str):
            columns = by_itself(emit, stream.keys)
            raise InvalidProgram(f"aggregate: emit: wanted 'updates' or 'end', found {emit!r:.80}. {columns}")
        raise InvalidProgram(f"aggregate: {misgiven(emit)}")
    if not specs:
        raise InvalidProgram("aggregate: wanted at least one aggregate, as in flights=Count(), found none")
    check_results("aggregate", specs, ("emit", *Options.__annotations__), Aggregate)
    try:
        operator = ColumnarAggregate(key_columns(stream.keys, stream.schema), specs, emit or usual)
    except ValueError as error:
        raise error if isinstance(error, InvalidProgram) else InvalidProgram(f"aggregate: {error}") from None
    check_columns(specs, stream.edges)
    check_types(specs, stream.edges)
    return operator
