"""Whether conditions can be computed, by the types of the columns alone: before anything runs.

A condition is tried on one record of nulls, and not on none, of which Arrow compares nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.path_search import PathEnds, PathSearch
from pointstamp.graph.tables.sql_text import Named, Tree, in_zone, names_in
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


def searches_in_zone(searches: Sequence[ElementSearch], zone: str) -> list[ElementSearch]:
    """The searches, with conditions on times as they are in a zone of Spark's."""
    found = []
    for search in searches:
        conditions = tuple(in_zone(condition, zone) for condition in search.conditions)
        search = replace(search, conditions=conditions)
        if isinstance(search, PathSearch) and search.ends is not None:
            search = replace(search, ends=ends_in_zone(search.ends, zone))
        found.append(search)
    return found


def ends_in_zone(ends: PathEnds, zone: str) -> PathEnds:
    """The same of paths."""
    edge = None if ends.edge is None else in_zone(ends.edge, zone)
    return replace(ends, begin=in_zone(ends.begin, zone), end=in_zone(ends.end, zone), edge=edge)


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
