"""Whether conditions can be computed, by the types of the columns alone: before anything runs.

A condition is tried on one record of nulls, and not on none, of which Arrow compares nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.path_search import PathEnds
from pointstamp.graph.tables.sql_text import Named, names_in
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
        lookups = {
            name: column_of(_nulls(schemas[kind]), name) for name, kind, _ in search.pattern.columns
        }
        for condition in search.conditions:
            if all(name.parts[0] in lookups for name in names_in(condition)):
                holds(condition, _of_elements(lookups), 1)


def check_ends(ends: PathEnds, schemas: Mapping[str, Any]) -> None:
    """Try the conditions of paths; raises what `check_conditions` does."""
    for tree, kind in ((ends.begin, "vertex"), (ends.end, "vertex"), (ends.edge, "edge")):
        if tree is not None:
            holds(tree, column_of(_nulls(schemas[kind]), kind), 1)


def _of_elements(lookups: Mapping[str, Lookup]) -> Lookup:
    """The lookup of attributes, whose names begin with that of an element."""
    return lambda name: lookups[name.parts[0]](Named(name.parts[1:]))


def _nulls(schema: Any) -> Any:
    """One record of nulls, which may be in any column."""
    columns = [pa.nulls(1, field.type) for field in schema]
    return pa.table(columns, names=schema.names)
