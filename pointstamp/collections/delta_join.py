"""Joins of several collections, of which nothing is kept in between.

A join of joins keeps the result of the inner one. Here the changes of each collection look into
arrangements of the others (`delta_plan.py` says in which order, `half_join.py` does it), so that
what is kept is those, which other operators share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pointstamp.collections.collection import Collection
from pointstamp.collections.delta_plan import (
    generic_query,
    path_query,
)
from pointstamp.collections.expression import col
from pointstamp.collections.join_queries import join_by_plans, relations_of
from pointstamp.collections.schema import column_names
from pointstamp.errors import BuildError, ColumnError


def delta_join(
    relations: Sequence[Collection] | Mapping[str, Collection],
    on: str | Sequence[str],
    *,
    name: str = "DeltaJoin",
) -> Collection:
    """Joins several collections without keeping intermediate results.

    The changes of each collection meet the others one after the other. What is kept is an
    arrangement of each collection for each key that it is asked by, which is shared with all
    that reads the same; a join of joins would keep what each of them gives.

    Parameters
    ----------
    relations : sequence of Collection, or by name
        Two at least.
    on : str or sequence of str
        The names of columns that all have, and by which all are equal; or, of collections by
        name, what is equal to what: `["orders.item = items.id", "orders.shop = shops.id"]`.

    Returns
    -------
    Collection
        The columns of all, in their order; of those that are equal the first. A record is there
        as often as the product of how often those that it is made of are. Nulls are equal to
        nothing.

    Raises
    ------
    BuildError
        If there are fewer than two, or one shares no column with the others.
    ColumnError
        If a column is not there, or two that are not equal are called the same.
    SchemaError
        If columns of different types are to be equal.

    Notes
    -----
    In a loop the relations meet one after the other, and what they give on the way is kept.

    >>> import pointstamp as ps
    >>> def build(scope, **tables):
    ...     return ps.delta_join(tables, ["sales.item = items.id", "sales.shop = shops.key"])
    >>> view = ps.View(
    ...     build, sales="item long, shop long", items="id long, title string",
    ...     shops="key long, city string",
    ... )
    >>> view.insert("items", [(7, "tea")])
    >>> view.insert("shops", [(1, "Rome")])
    >>> view.insert("sales", [(7, 1), (7, 2)])
    >>> view.advance()
    [((7, 1, 'tea', 'Rome'), 1)]
    """
    given = _by_name(relations, name)
    variables = _variables(given, on, name)
    schemas = {called: collection.schema.names for called, collection in given.items()}
    order: dict[str, None] = {}
    of_relation: dict[str, dict[str, str]] = {}
    for called, columns in schemas.items():
        found = {variables.get((called, column), column): column for column in columns}
        own = [v for v, column in found.items() if (called, column) not in variables]
        if len(found) < len(columns):
            raise ColumnError(
                f"operator {name!r}: two columns of {called!r} are to be equal; filter it before"
            )
        clash = [v for v in own if v in order or v in variables.values()]
        if clash:
            raise ColumnError(
                f"operator {name!r}: {called!r} has a column {clash[0]!r} as another one has that "
                "it is not to be equal to; rename one"
            )
        order |= dict.fromkeys(found)
        of_relation[called] = found
    found_relations = relations_of(given, of_relation, name)
    return join_by_plans(found_relations, path_query, tuple(order), name)


def generic_join(
    relations: Mapping[str, tuple[Collection, str | Sequence[str]]], *, name: str = "GenericJoin"
) -> Collection:
    """A worst-case optimal natural join of relations, for cyclic patterns.

    One variable after the other is bound, each to the values that all relations with it agree
    on. So the work of a change is within a logarithm of the most that it can bring; a join of
    two relations at a time may make far more in between, of a triangle all paths of two edges.

    Parameters
    ----------
    relations : of each by name the collection, and its columns' variables
        `{"R": (r, "a b"), "S": (s, "b c"), "T": (t, "a c")}`. A collection may be in it several
        times. A variable that a relation has twice is of records with two equal columns.

    Returns
    -------
    Collection
        A column for each variable, in the order in which they appear. A record is there as
        often as the product of how often those that it is made of are. Nulls are equal to
        nothing.

    Raises
    ------
    BuildError
        If there is none, the variables are not as many as the columns, or a relation shares
        none with the others.
    SchemaError
        If a variable stands for columns of different types.

    Notes
    -----
    What is kept is arrangements of the relations, by what they are asked by, shared with all
    that reads the same. Of a relation with columns beyond those that are bound at a step also
    its distinct records of the fewer columns are kept, and how often each of its records is
    there. In a loop two relations meet at a time, as in `delta_join`.

    >>> import pointstamp as ps
    >>> def build(scope, r, s, t):
    ...     return ps.generic_join({"R": (r, "a b"), "S": (s, "b c"), "T": (t, "a c")})
    >>> view = ps.View(build, r="x long, y string", s="x string, y long", t="x long, y long")
    >>> view.insert("r", [(1, "b"), (2, "b")])
    >>> view.insert("s", [("b", 3)])
    >>> view.insert("t", [(1, 3)])
    >>> view.advance()
    [((1, 'b', 3), 1)]
    """
    if not isinstance(relations, Mapping) or not relations:
        raise BuildError(
            f"operator {name!r} is given {relations!r}, and needs relations by name, as in "
            '{"R": (r, "a b"), "S": (s, "b c")}'
        )
    collections: dict[str, Collection] = {}
    of_relation: dict[str, dict[str, str]] = {}
    for called, pair in relations.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise BuildError(
                f"operator {name!r} is given {called!r}: {pair!r}, and needs a collection and the "
                'variables of its columns, as in (r, "a b")'
            )
        collection, written = pair
        _check(collection, called, name)
        variables = written.split() if isinstance(written, str) else list(written)
        columns = collection.schema.names
        if len(variables) != len(columns) or not all(isinstance(v, str) for v in variables):
            raise BuildError(
                f"operator {name!r}: {called!r} has the columns ({collection.schema}), and is "
                f"given the variables {variables}; each column needs one"
            )
        collections[called], of_relation[called] = _without_twice(collection, variables)
    order = tuple(dict.fromkeys(v for found in of_relation.values() for v in found))
    return join_by_plans(relations_of(collections, of_relation, name), generic_query, order, name)


def _without_twice(
    collection: Collection, variables: list[str]
) -> tuple[Collection, dict[str, str]]:
    """The records in which columns of the same variable are equal, with the first of them."""
    found: dict[str, str] = {}
    twice = []
    for variable, column in zip(variables, collection.schema.names, strict=True):
        if variable in found:
            collection = collection.filter(col(found[variable]) == col(column))
            twice.append(column)
        else:
            found[variable] = column
    return (collection.drop(*twice) if twice else collection), found


def _by_name(relations: Any, name: str) -> dict[str, Collection]:
    if isinstance(relations, Mapping):
        given = dict(relations)
    elif isinstance(relations, (list, tuple)):
        given = {f"relation {number}": one for number, one in enumerate(relations)}
    else:
        given = {}
    if len(given) < 2:
        raise BuildError(
            f"operator {name!r} is given {relations!r}, and needs two collections or more, in a "
            "list or by name"
        )
    for called, collection in given.items():
        _check(collection, called, name)
    return given


def _check(collection: Any, called: str, name: str) -> None:
    if not isinstance(collection, Collection):
        raise BuildError(
            f"operator {name!r} is given {called!r}: {collection!r}, which is no collection"
        )


def _variables(given: dict[str, Collection], on: Any, name: str) -> dict[tuple[str, str], str]:
    """By relation and column: the variable of a column that is equal to others."""
    texts = column_names(on, name)
    if not texts:
        raise BuildError(f"operator {name!r} is given on={on!r}, and needs one column at least")
    groups: list[list[tuple[str, str]]] = []
    for text in texts:
        if "=" in text:
            pair = [_column_of(side.strip(), given, text, name) for side in text.split("=")]
            if len(pair) != 2:
                raise BuildError(f"operator {name!r}: {text!r} should be as 'a.x = b.y'")
        else:
            for called, collection in given.items():
                collection.schema.column(text, f"operator {name!r}, {called!r}")
            pair = [(called, text) for called in given]
        meets = [group for group in groups if set(group) & set(pair)]
        groups = [group for group in groups if group not in meets]
        groups.append(list(dict.fromkeys([*(p for group in meets for p in group), *pair])))
    order = list(given)
    # A group is called as its column in the first relation that has one.
    firsts = [min(group, key=lambda pair: order.index(pair[0])) for group in groups]
    variables = {
        member: first[1] for first, group in zip(firsts, groups, strict=True) for member in group
    }
    names = [first[1] for first in firsts]
    twice = [one for one in names if names.count(one) > 1]
    if twice:
        raise ColumnError(
            f"operator {name!r}: two columns of the result would be called {twice[0]!r}; rename one"
        )
    return variables


def _column_of(text: str, given: dict[str, Collection], whole: str, name: str) -> tuple[str, str]:
    called, _, column = text.partition(".")
    if called not in given or not column:
        raise BuildError(
            f"operator {name!r}: in {whole!r}, {text!r} should be the name of a relation, a dot "
            f"and a column; there are the relations {list(given)}"
        )
    given[called].schema.column(column, f"operator {name!r}, {called!r}")
    return called, column
