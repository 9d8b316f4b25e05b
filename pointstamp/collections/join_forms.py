"""The forms of a join of collections, made of the inner join, and of what has no partner.

What has no partner is what is left when what has one is taken away: so an outer join is an
inner join beside one with the distinct keys of the other side, for each side that is kept whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.casts import Bound, null_of
from pointstamp.collections.expression import col, lit
from pointstamp.collections.join import join
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.trace_arrange import TraceArrangement
from pointstamp.collections.trace_join import join_traces
from pointstamp.errors import ColumnError

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection, How

Keys = tuple[list[str], list[str]]
"""Of the columns of the key: their names on the left side, and on the right one."""

_KEY = "the key of all"


def joined(
    left: Collection, right: Collection, keys: Keys, how: How, name: str, null_equal: bool
) -> Collection:
    """See `Collection.join`, which has checked what it is given."""
    if how == "cross":
        key = lit(0).alias(_KEY)
        one, two = (side.select(*side.schema.names, key) for side in (left, right))
        return _inner(one, two, ([_KEY], [_KEY]), name).drop(_KEY)
    left, right = _of_one_type(left, right, keys)
    if how == "inner":
        return _inner(left, right, keys, name, null_equal)
    if how == "semi":
        return _semi(left, right, keys, name, null_equal)
    if how == "anti":
        return _anti(left, right, keys, name, null_equal)
    return _outer(left, right, keys, how, name, null_equal)


def _of_one_type(left: Collection, right: Collection, keys: Keys) -> tuple[Collection, Collection]:
    """Both, with keys that are integers of other widths as longs."""
    for one, two in zip(*keys, strict=True):
        if left.schema.column(one).type != right.schema.column(two).type:
            left, right = _with_long(left, one), _with_long(right, two)
    return left, right


def _with_long(side: Collection, column: str) -> Collection:
    columns = {name: col(name) for name in side.schema.names}
    return side.computed({**columns, column: col(column).cast("long")}, "KeyAsLong")


def _inner(
    left: Collection, right: Collection, keys: Keys, name: str, null_equal: bool = False
) -> Collection:
    # Where one side has no null, none of the other one meets it, whatever nulls are equal to.
    with_nulls = [
        null_equal and left.schema.column(one).nullable and right.schema.column(two).nullable
        for one, two in zip(*keys, strict=True)
    ]
    schema = _schema(left.schema, right.schema, keys, with_nulls, name)
    one = left.arranged(keys[0], with_nulls)
    two = right.arranged(keys[1], with_nulls)
    rest = [_n_words(side.schema, key) for side, key in zip((left, right), keys, strict=True)]
    n_key = one.n_key
    recipe = [
        *range(n_key),
        *range(n_key, n_key + rest[0]),
        *(~word for word in range(n_key, n_key + rest[1])),
    ]
    if isinstance(one, TraceArrangement) and isinstance(two, TraceArrangement):
        return left.of(join_traces(one, two, recipe, schema.texts, name), schema)
    assert isinstance(one, Arrangement)
    assert isinstance(two, Arrangement)
    found = left.of(join(one, two, recipe, schema.texts, name), schema)
    found.append_only = left.append_only and right.append_only
    return found


def _semi(
    left: Collection, right: Collection, keys: Keys, name: str, null_equal: bool, of: str = "Keys"
) -> Collection:
    partners = right.select(*keys[1]).distinct(name=f"{name}{of}")
    return _inner(left, partners, keys, name, null_equal).select(*left.schema.names)


def _anti(
    left: Collection, right: Collection, keys: Keys, name: str, null_equal: bool
) -> Collection:
    # Under another name, so that no snapshot of a semijoin is taken for one of an antijoin.
    partnered = _semi(left, right, keys, name, null_equal, "AntiKeys")
    return left.concat(partnered.negate()).consolidate(name=f"{name}Others")


def _outer(
    left: Collection, right: Collection, keys: Keys, how: How, name: str, null_equal: bool
) -> Collection:
    inner = _inner(left, right, keys, name, null_equal)
    plain = inner.schema
    n_left = len(left.schema.columns)
    # Of the right columns null where there is no right side, of the left where there is no left.
    of_left, of_right = plain.names[: len(keys[0])], plain.names[n_left:]
    nullable = {
        *(of_right if how in ("left", "full") else ()),
        *(plain.names[len(keys[0]) : n_left] if how in ("right", "full") else ()),
    }
    key_nullable = {
        name
        for name, one, two in zip(of_left, *keys, strict=True)
        if (how in ("left", "full") and left.schema.column(one).nullable)
        or (how in ("right", "full") and right.schema.column(two).nullable)
    }
    schema = Schema(
        tuple(
            Column(c.name, c.type, c.nullable or c.name in nullable or c.name in key_nullable)
            for c in plain.columns
        )
    )
    parts = [inner]
    if how in ("left", "full"):
        names = dict(zip(plain.names[:n_left], _in_order(left.schema, keys[0]), strict=True))
        parts.append(
            _widened(_anti(left, right, keys, f"{name}Left", null_equal), schema, names, name)
        )
    if how in ("right", "full"):
        rest = [c for c in right.schema.names if c not in keys[1]]
        names = dict(zip([*of_left, *of_right], [*keys[1], *rest], strict=True))
        turned = keys[1], keys[0]
        parts.append(
            _widened(_anti(right, left, turned, f"{name}Right", null_equal), schema, names, name)
        )
    return parts[0].as_schema(schema, name).concat(*parts[1:])


def _widened(side: Collection, schema: Schema, names: dict[str, str], operator: str) -> Collection:
    """The records of one side with nulls in the columns of the other one.

    names : of the columns of the side, by those of the result
    """
    bound = {}
    for column in schema.columns:
        if column.name in names:
            value = col(names[column.name]).bind(side.schema)
            bound[column.name] = Bound(column.type, column.nullable, value.evaluate)
        else:
            bound[column.name] = null_of(column.type)
    return side.with_bound(bound, schema, f"{operator}Nulls")


def _schema(
    left: Schema, right: Schema, keys: Keys, with_nulls: Sequence[bool], name: str
) -> Schema:
    """The key, null only `with_nulls`, then the rest of the left side, then of the right one."""
    columns = [
        Column(one, left.column(one).type, nullable)
        for one, nullable in zip(keys[0], with_nulls, strict=True)
    ]
    columns += [c for c in left.columns if c.name not in keys[0]]
    taken = {column.name for column in columns}
    for column in right.columns:
        if column.name in keys[1]:
            continue
        called = f"{column.name}_right" if column.name in taken else column.name
        if called in taken:
            raise ColumnError(
                f"operator {name!r}: the result would have two columns {called!r}; rename one"
            )
        taken.add(called)
        columns.append(Column(called, column.type, column.nullable))
    return Schema(tuple(columns))


def _n_words(schema: Schema, key: list[str]) -> int:
    """How many words the columns have that are not of the key."""
    return sum(column.n_words for column in schema.columns if column.name not in key)


def _in_order(schema: Schema, key: list[str]) -> list[str]:
    return [*key, *(name for name in schema.names if name not in key)]
