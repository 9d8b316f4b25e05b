"""What methods of streams and collections are called elsewhere, for the error of a wrong name.

Flink, Spark, Kafka Streams, Bytewax, Beam and RxPY have most operators under other names. What
differs only in its spelling (`flatMap`) is not listed: it is found by its snake case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEYS = "an operator that needs a key takes it as key=, and exchange(key) only brings keys together"
_EVENT_TIME = "windows take time=, lateness= and clock="
_STATE = "state_machine folds by key; unary_frontier and unary_notify take code of your own"
_COLUMNS = "map_batches takes a function of columns, and as_collection(schema) makes a Collection"

OF_STREAMS = {
    "key_by": _KEYS,
    "key_on": _KEYS,
    "group_by": f"{_KEYS}; aggregate, reduce and state_machine do",
    "group_by_key": f"{_KEYS}; aggregate, reduce and state_machine do",
    "union": "concat",
    "merge": "concat",
    "chain": "concat",
    "foreach": "inspect",
    "for_each": "inspect",
    "print": "inspect(print)",
    "peek": "inspect",
    "tap": "inspect",
    "do": "inspect",
    "add_sink": "sink",
    "sink_to": "sink",
    "output": "sink",
    "write": "sink",
    "collect": "inspect(found.append), or ps.testing.collect(build)",
    "reduce_by_key": "reduce(function, key=)",
    "fold": "aggregate, accumulate or state_machine",
    "count_by_key": "aggregate(fold, key=, default=0)",
    "agg": "aggregate",
    "process": _STATE,
    "stateful_map": _STATE,
    "stateful": _STATE,
    "map_with_state": _STATE,
    "scan": _STATE,
    "filter_map": "flat_map, of a function that gives a list",
    "map_partitions": "map_batches",
    "map_in_arrow": "map_batches",
    "map_in_pandas": "map_batches",
    "select": _COLUMNS,
    "with_columns": _COLUMNS,
    "with_column": _COLUMNS,
    "where": "filter",
    "split": "branch, or partition",
    "side_output": "branch, or on_error='route' of what fails",
    "get_side_output": "branch, or on_error='route' of what fails",
    "rebalance": "exchange(to=) or distribute(route)",
    "shuffle": "exchange(to=) or distribute(route)",
    "repartition": "exchange(to=) or distribute(route)",
    "partition_custom": "exchange(to=)",
    "drop_duplicates": "distinct",
    "unique": "distinct",
    "limit": "top_k",
    "with_watermark": _EVENT_TIME,
    "assign_timestamps_and_watermarks": _EVENT_TIME,
    "window_all": "window, without a key",
    "co_group": "join, or binary_frontier",
    "connect": "binary_frontier or binary_notify; a loop is connected by what feedback gave",
    "interval_join": "join_window, or join(other, key, retain=True) and a filter",
    "union_all": "concat",
}
"""By the snake case of the name: what is here in its place."""


_HOW = "join(other, on=, how=)"
_ORDER = "group_by(...).top_k(k, by=); a collection has no order"
_TABLE = "inspect(function), or a ps.View, which has snapshot()"

OF_COLLECTIONS = {
    "where": "filter",
    "with_column": "with_columns",
    "with_column_renamed": "rename",
    "select_expr": "select",
    "union": "concat",
    "union_all": "concat",
    "merge": "concat",
    "sort": _ORDER,
    "order_by": _ORDER,
    "limit": _ORDER,
    "head": _ORDER,
    "drop_duplicates": "distinct",
    "unique": "distinct",
    "except_all": "subtract",
    "intersect_all": "intersect",
    "cross_join": _HOW,
    "left_join": _HOW,
    "semijoin": _HOW,
    "antijoin": _HOW,
    "aggregate": "agg, or group_by(...).agg(...)",
    "reduce": "group_by(...).reduce(function, schema)",
    "top_k": "group_by(...).top_k(k, by=)",
    "exchange": "nothing: what needs a key exchanges by itself",
    "collect": _TABLE,
    "show": _TABLE,
    "snapshot": _TABLE,
}

OF_GROUPS = dict.fromkeys(
    ("sum", "avg", "mean", "min", "max", "median", "first", "last", "aggregate", "std", "var"),
    "agg(total=ps.sum(column)), with an aggregate for each column of the result",
)


def advice(name: str, owner: type, elsewhere: Mapping[str, str] = OF_STREAMS) -> str:
    """What is in the place of a method `name` that the class `owner` does not have.

    >>> advice("toBytes", int), advice("unionAll", int), advice("nothing", int)
    ("; it is called 'to_bytes' here", '; here: concat', '')
    """
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    if snake != name and hasattr(owner, snake):
        return f"; it is called {snake!r} here"
    return f"; here: {elsewhere[snake]}" if snake in elsewhere else ""


def no_attribute(
    owner: object, name: str, elsewhere: Mapping[str, str] = OF_STREAMS
) -> AttributeError:
    """The error of an object that has no attribute `name`, with the advice."""
    more = "" if name.startswith("_") else advice(name, type(owner), elsewhere)
    return AttributeError(
        f"{type(owner).__name__!r} object has no attribute {name!r}{more}", name=name, obj=owner
    )
