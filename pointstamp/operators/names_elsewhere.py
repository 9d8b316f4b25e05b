"""What methods of streams and collections are called elsewhere, for the error of a wrong name.

Timely (Rust), Flink, Spark, Kafka Streams, Bytewax, Beam and RxPY have most operators under other
names, and so have differential, Pathway, pandas and Polars those of tables. What differs only in
its spelling (`flatMap`) is not listed: it is found by its snake case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, TypeVar

_KEYS = "an operator that needs a key takes it as key=, and exchange(key) only brings keys together"
_EVENT_TIME = "windows take time=, lateness= and clock="
_STATE = "state_machine folds by key; unary_frontier and unary_notify take code of your own"
_COLUMNS = "map_batches takes a function of columns, and as_collection(schema) makes a Collection"

_PAIRS = "the operator without _value, of a function of the pair (key, value)"
_RESULTS = "ok_err, which splits Ok and Err, or on_error='route' of what fails"
_KINDS = "nothing: batches are lists or of columns, as they come"
_WORKERS = "nothing: ps.execute(main, workers=n) has n instances of every operator"

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
    "stateful_flat_map": _STATE,
    "stateful_batch": _STATE,
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
    "side_output_late_data": "the second stream that a window operator returns",
    "allowed_lateness": f"{_EVENT_TIME}; a window is complete once",
    "trigger": f"{_EVENT_TIME}; a window is complete once",
    "rebalance": "exchange(to=) or distribute(route)",
    "shuffle": "exchange(to=) or distribute(route)",
    "repartition": "exchange(to=) or distribute(route)",
    "partition_custom": "exchange(to=)",
    "global": "exchange(to=lambda record: 0)",
    "print_to_err": "inspect(print)",
    "execute_and_collect": "inspect(found.append), or ps.testing.collect(build)",
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
    "enter_at": "enter(scope), then delay, whose function gives the time with the round",
    "map_in_place": "map",
    "inspect_core": "inspect_frontier",
    "capture_into": "capture",
    "replay_into": "scope.replay, of what capture has written",
    "container": _KINDS,
    "ok": _RESULTS,
    "err": _RESULTS,
    "and_then": _RESULTS,
    "map_ok": _RESULTS,
    "map_err": _RESULTS,
    "unwrap_or_else": _RESULTS,
    "collect_window": "window, whose results have the records",
    "max_window": "reduce_window(max, ...)",
    "min_window": "reduce_window(min, ...)",
    "windowby": "window",
    "time_window": "window",
    "count_final": "aggregate(fold, key=, default=0)",
    "fold_final": "aggregate(fold, key=, default=)",
    "reduce_final": "reduce(function, key=)",
    "max_final": "reduce(max, key=)",
    "min_final": "reduce(min, key=)",
    "max_by": "top_k(1, by=, key=)",
    "sum": "reduce, or aggregate([(column, 'sum')], key=) of columns",
    "max": "reduce(max, key=)",
    "min": "reduce(min, key=)",
    "map_value": _PAIRS,
    "filter_value": _PAIRS,
    "filter_map_value": _PAIRS,
    "flat_map_value": _PAIRS,
    "flat_map_batch": "map_batches",
    "key_rm": "map(lambda pair: pair[1])",
    "inspect_debug": "inspect_time",
    "redistribute": "exchange(to=) or distribute(route)",
    "raises": "inspect, of a function that raises",
    "enrich_cached": "map, whose function may keep a cache, or be an async def",
    "set_parallelism": _WORKERS,
    "uid": "name= of the operator",
    "name": "name= of the operator",
    "asof_join": "as_collection(schema), and a join and a filter there",
}
"""By the snake case of the name: what is here in its place."""

_RECORDS = "to_stream(records), or new_input()"
OF_SCOPES = {
    "from_collection": _RECORDS,
    "from_data": _RECORDS,
    "from_elements": _RECORDS,
    "input": _RECORDS,
    "from_source": "source, or async_source",
    "add_source": "source, or async_source",
}


_HOW = "join(other, on=, how=)"
_ORDER = "group_by(...).top_k(k, by=); a collection has no order"
_TABLE = "inspect(function), or a ps.View, which has snapshot()"

_REDUCE = "group_by(...).reduce(function, schema), or agg"
_NEAREST = f"{_HOW}, a filter, and group_by(...).agg with ps.max_by or ps.min_by"

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
    "join_map": f"{_HOW}, then select or map",
    "join_core": f"{_HOW}, then select or map; an arrangement has join, too",
    "join_function": f"{_HOW}, then select, map or flat_map",
    "reduce_abelian": _REDUCE,
    "reduce_core": _REDUCE,
    "reduce_named": _REDUCE,
    "arrange_by_key": "arrange(*key)",
    "arrange_by_self": "arrange(*key), by all columns",
    "count_total": "count, or group_by(...).count()",
    "count_core": "count, or group_by(...).count()",
    "distinct_total": "distinct",
    "distinct_core": "distinct",
    "threshold_total": "threshold",
    "threshold_semigroup": "threshold",
    "flat_map_ref": "flat_map",
    "inspect_batch": "inspect, or updates().inspect_batch",
    "inner": "updates(), the stream of its changes",
    "join_left": _HOW,
    "join_right": _HOW,
    "join_outer": _HOW,
    "concat_reindex": "concat",
    "difference": "subtract",
    "windowby": "window",
    "asof_join": _NEAREST,
    "join_asof": _NEAREST,
    "merge_asof": _NEAREST,
    "interval_join": f"{_HOW}, and a filter",
    "groupby": "group_by",
    "assign": "with_columns",
    "sort_values": _ORDER,
    "nlargest": _ORDER,
    "unnest": "explode",
    "sum": "agg(total=ps.sum(column))",
    "mean": "agg(mean=ps.avg(column))",
    "max": "agg(most=ps.max(column))",
    "min": "agg(least=ps.min(column))",
    "to_pandas": _TABLE,
    "to_arrow": _TABLE,
    "to_polars": _TABLE,
}

OF_GROUPS = dict.fromkeys(
    ("sum", "avg", "mean", "min", "max", "median", "first", "last", "aggregate", "std", "var"),
    "agg(total=ps.sum(column)), with an aggregate for each column of the result",
)

_AGGREGATE = "agg(x=ps.sum(column)) and the like: an aggregate is no method of a column"
_TEXTS = "methods of the column itself, such as col('name').lower() and col('at').year()"

OF_EXPRESSIONS = {
    **dict.fromkeys(
        ("sum", "mean", "avg", "min", "max", "count", "median", "std", "var", "mode", "n_unique"),
        _AGGREGATE,
    ),
    "isnull": "is_null",
    "isna": "is_null",
    "notnull": "is_not_null",
    "notna": "is_not_null",
    "isin": "is_in",
    "str": _TEXTS,
    "dt": _TEXTS,
    "over": "ps.rank().over(keys, order_by=), also of row_number, lag, lead and rolling",
    "shift": "ps.lag or ps.lead, with over(keys, order_by=)",
    "rank": "ps.rank().over(keys, order_by=)",
    "desc": "descending= of what orders",
    "asc": "descending= of what orders",
    "otherwise": "ps.when(condition).then(value).otherwise(value)",
    "apply": "map(function, schema) of the collection",
    "map": "map(function, schema) of the collection",
    "map_elements": "map(function, schema) of the collection",
    "astype": "cast",
    "rlike": "like, or flat_map with a function",
}


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
    owner: object,
    name: str,
    elsewhere: Mapping[str, str] = OF_STREAMS,
    columns: Collection[str] = (),
) -> AttributeError:
    """The error of an object that has no attribute `name`, which may be a column, with advice."""
    found = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(found, name=name, obj=owner)
    if name in columns:
        return AttributeError(f"{found}; the column is written ps.col({name!r})")
    more = advice(name, type(owner), elsewhere) or closest(name, type(owner))
    # With the name Python would guess once more, where it prints the error.
    return AttributeError(found + more) if more else AttributeError(found, name=name, obj=owner)


def closest(name: str, owner: type) -> str:
    """What a name that the class `owner` does not have may be meant to be.

    >>> closest("bit_lenght", int), closest("nothing", int)
    ("; did you mean 'bit_length'?", '')
    """
    from difflib import get_close_matches  # only here, where something is wrong already

    known = [each for each in dir(owner) if not each.startswith("_")]
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


Method = TypeVar("Method", bound=Callable[..., Any])


def of_other_words(what: str, words: Mapping[str, str]) -> Callable[[Method], Method]:
    """Have a method refuse arguments by the names that its like has elsewhere in the library.

    what : whose method it is, in the plural
    words : what to write, by the name that is not one here
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            for name, here in words.items():
                if name in kwargs:
                    raise TypeError(f"{method.__name__}() of {what} takes {here}, and no {name}=")
            return method(*args, **kwargs)

        decorated: Any = call
        found: Method = decorated
        return found

    return decorate
