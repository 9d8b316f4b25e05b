"""Messages along edges, and what becomes of them at their vertices: in SQL's words, by Arrow.

A message is an expression over the attributes of an edge and of both its vertices, `src.age`,
`edge.weight`, `dst.id`, sent to either of them; where it is null none is sent. At its vertex it is
`msg`, and what comes is put together by aggregates, `sum(msg) as total`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.errors import ColumnError, SchemaError, UsageError
from pointstamp.graph.tables.argument_checks import check_names
from pointstamp.graph.tables.exact_sums import check_sums
from pointstamp.graph.tables.frame_columns import taken, with_column
from pointstamp.graph.tables.sql_text import Computed, Named, Tree, parse_sql
from pointstamp.graph.tables.sql_values import column_of, field_of, values_of

Ints = npt.NDArray[np.int64]

MESSAGE = "msg"

AGGREGATES = {
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "mean",
    "mean": "mean",
    "count": "count",
    "first": "first",
    "any_value": "first",
    "collect_list": "list",
    "collect_set": "distinct",
    "count_distinct": "count_distinct",
    "stddev_pop": "stddev",
    "var_pop": "variance",
}
"""What Arrow calls the aggregates that Spark SQL has."""

_NAMED = re.compile(r"^(?P<text>.*\))\s+as\s+`?(?P<name>\w+)`?\s*$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class MessageAggregate:
    """An aggregate of messages: of which expression over `msg`, and what it is called."""

    function: str
    operand: Tree
    name: str


def parse_aggregate(text: str) -> MessageAggregate:
    """An aggregate as it is written.

    Raises
    ------
    UsageError
        If it is none.

    >>> parse_aggregate("sum(msg * 2) as total").name
    'total'
    """
    if not isinstance(text, str):
        raise UsageError(f"an aggregate of messages is text such as 'sum(msg)', not {text!r}")
    found = _NAMED.match(text)
    tree = parse_sql(found["text"] if found else text)
    is_one = isinstance(tree, Computed) and tree.function in AGGREGATES
    if not (isinstance(tree, Computed) and is_one and len(tree.operands) <= 1):
        raise UsageError(
            f"an aggregate of messages is one of {', '.join(AGGREGATES)} of an expression, as in "
            f"'sum(msg) as total', and not {text!r}"
        )
    operand = tree.operands[0] if tree.operands else Named((MESSAGE,))
    return MessageAggregate(tree.function, operand, found["name"] if found else text.strip())


def parse_aggregates(given: str | Sequence[str]) -> list[MessageAggregate]:
    """One aggregate, or several, as they are written.

    Raises
    ------
    UsageError
        If one is none, or there is none.
    SchemaError
        If two have one name, or one that of the ids.

    >>> [one.name for one in parse_aggregates(["min(msg)", "max(msg) as last"])]
    ['min(msg)', 'last']
    """
    texts = [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
    if not texts:
        raise UsageError("messages come to an aggregate, such as 'sum(msg) as total'; give one")
    parsed = [parse_aggregate(text) for text in texts]
    check_names([one.name for one in parsed], "aggregates of messages")
    return parsed


def parse_program(columns: Mapping[str, tuple[str, str]]) -> dict[str, tuple[Tree, Tree]]:
    """How the columns of a vertex program begin, and what a round makes of them.

    Raises
    ------
    UsageError
        If it is not that, or a column has a name that means something else.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise UsageError(
            "pregel needs a column or more: by name how it begins and what a round makes of it, as "
            f"in {{'total': ('0', 'total + coalesce(msg, 0)')}}, not {columns!r}"
        )
    for name, given in columns.items():
        if name in ("id", MESSAGE):
            means = "the ids" if name == "id" else "what comes to a vertex"
            raise UsageError(f"a program has no column {name!r} of its own: it is {means}")
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise UsageError(
                f"the column {name!r} of a program is two expressions, how it begins and what a "
                f"round makes of it, not {given!r}"
            )
    return {name: (parse_sql(begin), parse_sql(then)) for name, (begin, then) in columns.items()}


@dataclass(frozen=True, eq=False)
class Triplets:
    """Edges with both their vertices: the tables, and which vertices are whose ends.

    Attributes
    ----------
    vertices, edges : pyarrow.Table
    ends : (int64[m], int64[m])
        The records of `vertices` that are sources, and targets.
    """

    vertices: Any
    edges: Any
    ends: tuple[Ints, Ints]

    def lookup(self, name: Named) -> Any:
        """The column of an attribute: `src.age`, `edge.weight`."""
        first, *rest = name.parts
        if first not in ("src", "edge", "dst") or not rest:
            raise ColumnError(
                f"{'.'.join(name.parts)!r} is no attribute of an edge or its vertices: say "
                "'src.age', 'edge.weight', 'dst.age'"
            )
        table = self.edges if first == "edge" else self.vertices
        if rest[0] not in table.schema.names:
            raise ColumnError(
                f"{first!r} has no attribute {rest[0]!r}, only "
                f"{', '.join(map(repr, table.schema.names))}"
            )
        column = field_of(table.column(rest[0]), rest[1:], rest[0])
        return column if first == "edge" else taken(column, self.ends[first == "dst"])

    def sent(self, to_source: Tree | None, to_target: Tree | None) -> tuple[Ints, Any]:
        """The messages of all edges: to which record of the vertices each is, and what it says."""
        of, values = [], []
        for tree, ends in ((to_source, self.ends[0]), (to_target, self.ends[1])):
            if tree is not None:
                value = values_of(tree, self.lookup, len(ends))
                valid = value.is_valid()
                values.append(value.filter(valid))
                of.append(ends[valid.to_numpy(zero_copy_only=False)])
        return np.concatenate(of), _together(values)


def _together(messages: list[Any]) -> Any:
    """Messages to sources and to targets as one array, of a type that holds both."""
    if len({values.type for values in messages}) == 1:
        return pa.concat_arrays(messages)
    try:
        tables = [pa.table({MESSAGE: values}) for values in messages]
        column = pa.concat_tables(tables, promote_options="permissive").column(MESSAGE)
        return pa.concat_arrays(column.chunks)
    except pa.ArrowException as error:
        kinds = " and to targets ".join(str(values.type) for values in messages)
        raise SchemaError(f"messages have one type; to sources they are {kinds}") from error


def aggregated(to: Ints, messages: Any, aggregates: Sequence[MessageAggregate]) -> tuple[Ints, Any]:
    """What messages come to: the records that have any, in order, and a table of aggregates."""
    batch = pa.table({MESSAGE: messages})
    columns = {"to": arrow_array(to)}
    for i, one in enumerate(aggregates):
        columns[f"{i}"] = values_of(one.operand, column_of(batch, "messages"), len(to))
    sums = [f"{i}" for i, one in enumerate(aggregates) if AGGREGATES[one.function] == "sum"]
    wanted: Any = [(f"{i}", AGGREGATES[one.function]) for i, one in enumerate(aggregates)]
    groups = pa.table(columns).group_by("to", use_threads=False)
    try:
        found = groups.aggregate(wanted).sort_by("to")
        for name in sums:
            check_sums(pa.table({"to": columns["to"], "value": columns[name]}))
    except pa.ArrowException as error:
        raise SchemaError(
            f"messages, which are {messages.type}, cannot be put together by "
            f"{', '.join(one.function for one in aggregates)}: {str(error).splitlines()[0]}"
        ) from error
    table = found.select([f"{i}_{function}" for i, function in wanted])
    of = numbers(found.column("to").combine_chunks())
    return of, table.rename_columns([one.name for one in aggregates])


@dataclass(frozen=True)
class PregelProgram:
    """A vertex program: how columns of vertices begin, and what a round makes of them."""

    columns: Mapping[str, tuple[Tree, Tree]]
    to_source: Tree | None
    to_target: Tree | None
    aggregate: MessageAggregate
    max_iter: int
    early_stopping: bool

    def run(self, vertices: Any, edges: Any, ends: tuple[Ints, Ints]) -> Any:
        """The vertices with the columns of the program, after its rounds."""
        n = vertices.num_rows
        state = vertices
        for name, (initial, _) in self.columns.items():
            value = values_of(initial, column_of(vertices, "vertices"), n)
            state = with_column(state, name, value)
        for _ in range(self.max_iter):
            to, said = Triplets(state, edges, ends).sent(self.to_source, self.to_target)
            if not len(to) and self.early_stopping:
                break
            of, found = aggregated(to, said, [self.aggregate])
            at = np.full(n, -1, np.int64)
            at[of] = np.arange(len(of))
            received = with_column(state, MESSAGE, taken(found.column(0), at))
            state = self._updated(state, received)
        return state

    def _updated(self, state: Any, received: Any) -> Any:
        lookup = column_of(received, "vertices")
        for name, (_, update) in self.columns.items():
            value = values_of(update, lookup, state.num_rows)
            kind = state.schema.field(name).type
            try:
                state = with_column(state, name, value.cast(kind))
            except pa.ArrowException as error:
                raise SchemaError(
                    f"{name!r} begins as {kind}, and a round makes {value.type} of it: "
                    f"{str(error).splitlines()[0]}; begin with 'cast(... as double)', for one"
                ) from error
        return state
