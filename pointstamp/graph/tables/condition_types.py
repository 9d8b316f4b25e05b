"""Whether conditions can be computed, by the types of the columns alone: before anything runs.

A condition is tried on one record of nulls, and not on none, of which Arrow compares nothing.

Beside columns of moments, as Spark's `timestamp` has them, a timestamp that is written without a
zone is in that of the session, as in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.path_search import PathEnds, PathSearch
from pointstamp.graph.tables.sql_text import Computed, Constant, Named, Tree, names_in
from pointstamp.graph.tables.sql_values import Lookup, column_of, holds


def check_conditions(searches: Sequence[ElementSearch], schemas: Mapping[str, Any]) -> None:
    """Try the conditions of searches.

    schemas : the Arrow schema of a "vertex" and of an "edge"

    Raises
    ------
    SchemaError
        For values that do not go together, or a condition that is not true or false.
    UsageError
        For a function that is not there.
    """
    nulls = _nulls(schemas)
    for search in searches:
        lookups = _lookups(search, nulls)
        for condition in search.conditions:
            if _is_of(condition, lookups):
                holds(condition, _of_elements(lookups), 1)


def check_ends(ends: PathEnds, schemas: Mapping[str, Any]) -> None:
    """Try the conditions of paths; raises what `check_conditions` does."""
    nulls = _nulls(schemas)
    for tree, kind in ((ends.begin, "vertex"), (ends.end, "vertex"), (ends.edge, "edge")):
        if tree is not None:
            holds(tree, column_of(nulls[kind], kind), 1)


def in_zone(
    searches: Sequence[ElementSearch], schemas: Mapping[str, Any], zone: str
) -> list[ElementSearch]:
    """The searches, with times that are compared with moments in a zone of Spark's."""
    found, nulls = [], _nulls(schemas)
    for search in searches:
        lookup = _of_elements(_lookups(search, nulls))
        conditions = [localized(each, zone, lookup) for each in search.conditions]
        search = replace(search, conditions=tuple(conditions))
        if isinstance(search, PathSearch) and search.ends is not None:
            search = replace(search, ends=ends_in_zone(search.ends, schemas, zone))
        found.append(search)
    return found


def ends_in_zone(ends: PathEnds, schemas: Mapping[str, Any], zone: str) -> PathEnds:
    """The same of paths."""
    nulls = _nulls(schemas)
    vertex, edge = (column_of(nulls[kind], kind) for kind in ("vertex", "edge"))
    return replace(
        ends,
        begin=localized(ends.begin, zone, vertex),
        end=localized(ends.end, zone, vertex),
        edge=None if ends.edge is None else localized(ends.edge, zone, edge),
    )


def localized(tree: Tree, zone: str, lookup: Lookup) -> Tree:
    """A condition in which dates, and timestamps without a zone, beside moments have this zone.

    >>> from pointstamp.graph.tables.sql_text import parse_sql
    >>> columns = pa.table({"t": pa.nulls(1, pa.timestamp("us", "UTC"))})
    >>> tree = parse_sql("t >= timestamp '2026-07-01 12:00:00'")
    >>> localized(tree, "Europe/Berlin", column_of(columns, "vertex")).operands[1]
    Constant(value='2026-07-01T12:00:00+02:00', kind='timestamp')
    """
    if not isinstance(tree, Computed):
        return tree
    operands = tuple(localized(operand, zone, lookup) for operand in tree.operands)
    if tree.function == "cast" and operands[1] == Constant("timestamp"):
        if _is_moment(operands[0], lookup):
            return operands[0]  # it is one, and Arrow would take its zone away
    elif any(_is_moment(one, lookup) for one in operands):
        operands = tuple(_at(one, zone) for one in operands)
    return replace(tree, operands=operands)


_VALUES_OF = frozenset(["coalesce", "nvl", "greatest", "least", "if", "case"])
"""Functions whose values are those of operands."""


def _is_moment(tree: Tree, lookup: Lookup) -> bool:
    if isinstance(tree, Named):
        kind = lookup(tree).type
        return pa.types.is_timestamp(kind) and kind.tz is not None
    if isinstance(tree, Computed):
        return tree.function in _VALUES_OF and any(_is_moment(o, lookup) for o in tree.operands)
    return False


def _at(tree: Tree, zone: str) -> Tree:
    """A constant, or what is one of several, in a zone."""
    if isinstance(tree, Computed) and tree.function in _VALUES_OF:
        return replace(tree, operands=tuple(_at(one, zone) for one in tree.operands))
    if isinstance(tree, Constant) and tree.kind in ("date", "timestamp"):
        # What cannot be read is refused where it is computed.
        with suppress(ValueError, KeyError, OSError):
            local = datetime.fromisoformat(tree.value)
            if local.tzinfo is None:
                moment = local.replace(tzinfo=_zone(zone))
                return Constant(moment.isoformat(), "timestamp")
    return tree


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?")


def _zone(name: str) -> tzinfo:
    """What Spark names: a region, or an offset such as +01:00 or GMT+1."""
    if name == "Z":
        return UTC
    if (offset := _OFFSET.fullmatch(name)) is not None:
        sign, hours, minutes = offset.groups()
        distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-distance if sign == "-" else distance)
    return ZoneInfo(name)


def _lookups(search: ElementSearch, nulls: Mapping[str, Any]) -> dict[str, Lookup]:
    return {name: column_of(nulls[kind], name) for name, kind, _ in search.pattern.columns}


def _is_of(condition: Tree, lookups: Mapping[str, Lookup]) -> bool:
    """Whether it names elements of this search alone."""
    return all(name.parts[0] in lookups for name in names_in(condition))


def _of_elements(lookups: Mapping[str, Lookup]) -> Lookup:
    """The lookup of attributes, whose names begin with that of an element; else null."""

    def lookup(name: Named) -> Any:
        of = lookups.get(name.parts[0])
        # Of a chain that is longer than this search.
        return pa.nulls(1) if of is None else of(Named(name.parts[1:]))

    return lookup


def _nulls(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """One record of each kind, of nulls, which may be in any column."""
    return {
        kind: pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)
        for kind, schema in schemas.items()
    }
