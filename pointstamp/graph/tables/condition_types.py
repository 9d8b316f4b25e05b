"""Whether conditions can be computed, by the types of the columns alone: before anything runs.

A condition is tried on one record of nulls, and not on none, of which Arrow compares nothing.

Beside columns of moments, as Spark's `timestamp` has them, a timestamp that is written without a
zone is in that of the session, as in Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
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
    for search in searches:
        lookups = _lookups(search, schemas)
        for condition in search.conditions:
            if _is_of(condition, lookups):
                holds(condition, _of_elements(lookups), 1)


def check_ends(ends: PathEnds, schemas: Mapping[str, Any]) -> None:
    """Try the conditions of paths; raises what `check_conditions` does."""
    for tree, kind in ((ends.begin, "vertex"), (ends.end, "vertex"), (ends.edge, "edge")):
        if tree is not None:
            holds(tree, column_of(_nulls(schemas[kind]), kind), 1)


def in_zone(
    searches: Sequence[ElementSearch], schemas: Mapping[str, Any], zone: str
) -> list[ElementSearch]:
    """The searches, with timestamps that are compared with moments in a zone of Spark's."""
    found = []
    for search in searches:
        lookups = _lookups(search, schemas)
        conditions = [
            localized(each, zone, _of_elements(lookups)) if _is_of(each, lookups) else each
            for each in search.conditions
        ]
        search = replace(search, conditions=tuple(conditions))
        if isinstance(search, PathSearch) and search.ends is not None:
            search = replace(search, ends=ends_in_zone(search.ends, schemas, zone))
        found.append(search)
    return found


def ends_in_zone(ends: PathEnds, schemas: Mapping[str, Any], zone: str) -> PathEnds:
    """The same of paths."""
    vertex, edge = (column_of(_nulls(schemas[kind]), kind) for kind in ("vertex", "edge"))
    return replace(
        ends,
        begin=localized(ends.begin, zone, vertex),
        end=localized(ends.end, zone, vertex),
        edge=None if ends.edge is None else localized(ends.edge, zone, edge),
    )


def localized(tree: Tree, zone: str, lookup: Lookup) -> Tree:
    """A condition in which a timestamp without a zone that is beside a moment has this one.

    >>> from pointstamp.graph.tables.sql_text import parse_sql
    >>> columns = pa.table({"t": pa.nulls(1, pa.timestamp("us", "UTC"))})
    >>> tree = parse_sql("t >= timestamp '2026-07-01 12:00:00'")
    >>> localized(tree, "Europe/Berlin", column_of(columns, "vertex")).operands[1]
    Constant(value='2026-07-01T12:00:00+02:00', kind='timestamp')
    """
    if not isinstance(tree, Computed):
        return tree
    operands = tuple(localized(operand, zone, lookup) for operand in tree.operands)
    if any(isinstance(one, Named) and _is_moment(lookup(one).type) for one in operands):
        operands = tuple(_at(one, zone) if isinstance(one, Constant) else one for one in operands)
    return replace(tree, operands=operands)


def _is_moment(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _at(constant: Constant, zone: str) -> Constant:
    if constant.kind == "timestamp":
        with suppress(ValueError, KeyError):  # what is none is refused where it is computed
            local = datetime.fromisoformat(constant.value)
            if local.tzinfo is None:
                moment = local.replace(tzinfo=_zone(zone))
                return replace(constant, value=moment.isoformat())
    return constant


def _zone(name: str) -> tzinfo | None:
    """What Spark names: a region, or an offset such as +01:00."""
    if name[0] in "+-":
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo
    return ZoneInfo(name)


def _lookups(search: ElementSearch, schemas: Mapping[str, Any]) -> dict[str, Lookup]:
    columns = search.pattern.columns
    return {name: column_of(_nulls(schemas[kind]), name) for name, kind, _ in columns}


def _is_of(condition: Tree, lookups: Mapping[str, Lookup]) -> bool:
    """Whether it names elements of this search alone."""
    return all(name.parts[0] in lookups for name in names_in(condition))


def _of_elements(lookups: Mapping[str, Lookup]) -> Lookup:
    """The lookup of attributes, whose names begin with that of an element."""
    return lambda name: lookups[name.parts[0]](Named(name.parts[1:]))


def _nulls(schema: Any) -> Any:
    """One record of nulls, which may be in any column."""
    columns = [pa.nulls(1, field.type) for field in schema]
    return pa.table(columns, names=schema.names)
