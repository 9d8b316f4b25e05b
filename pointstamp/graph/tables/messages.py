"""Messages along edges, and what becomes of them at their vertices: in SQL's words, by Arrow.

A message is an expression over the attributes of an edge and of both its vertices, `src.age`,
`edge.weight`, `dst.id`, sent to either of them; where it is null none is sent. At its vertex it is
`msg`, and what comes is put together by aggregates, `sum(msg) as total`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.arrow_groups import counted_nulls
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.errors import ColumnError, SchemaError, UsageError
from pointstamp.graph.tables.argument_checks import check_names, whole_number
from pointstamp.graph.tables.exact_sums import check_sums
from pointstamp.graph.tables.frame_columns import struct_of, taken, with_column
from pointstamp.graph.tables.numbered_graph import PIECE
from pointstamp.graph.tables.sql_text import (
    Computed,
    Constant,
    Named,
    Tree,
    in_zone,
    parse_sql,
)
from pointstamp.graph.tables.sql_values import column_of, field_of, values_of

Ints = npt.NDArray[np.int64]

Given = str | Callable[[Any], Any]
"""An expression as it is written, or a function of record batches, of each of which it gives a
column: Arrow's, NumPy's or a list."""

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

_OF_NUMBERS = ("sum", "mean", "stddev", "variance")
"""Those that Spark has of no boolean; Arrow sums and averages them."""

_NAMED = re.compile(r"^(?P<text>.*\))\s+as\s+`?(?P<name>\w+)`?\s*$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Function:
    """A function in the place of an expression: of a batch, a value for each of its records.

    Attributes
    ----------
    call : callable
    what : what it makes, for the message of an error
    """

    call: Callable[[Any], Any]
    what: str

    def values(self, batches: Iterator[Any]) -> Any:
        """What it makes of batches, as one Arrow array."""
        return concatenated([self._of(batch) for batch in batches], self.what)

    def _of(self, batch: Any) -> Any:
        found = self.call(batch)
        try:
            found = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaError(
                f"the function of {self.what} gives a column, Arrow's, NumPy's or a list, and not "
                f"{type(found).__name__}: {str(error).splitlines()[0]}"
            ) from error
        if len(found) != batch.num_rows:
            raise SchemaError(
                f"the function of {self.what} gives a value for each record, and for "
                f"{batch.num_rows} it gave {len(found)}"
            )
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def concatenated(arrays: list[Any], what: str) -> Any:
    """Arrays as one, those that are of nulls alone as of the type of the others."""
    try:
        tables = [pa.table({"": array}) for array in arrays]
        column = pa.concat_tables(tables, promote_options="permissive").column("")
        return pa.concat_arrays(column.chunks) if column.num_chunks else arrays[0]
    except pa.ArrowException as error:
        kinds = ", ".join(dict.fromkeys(str(array.type) for array in arrays))
        raise SchemaError(f"{what} are of one type, not of {kinds}") from error


Formula = Tree | Function

Program = dict[str, tuple[Formula, Formula]]
"""By the name of each column, how it begins and what a round makes of it."""


def formula(given: Given | Tree, what: str) -> Formula:
    """An expression or a function, as it is given; a `UsageError` if it is neither."""
    if isinstance(given, Constant | Named | Computed):
        return given
    return Function(given, what) if callable(given) else parse_sql(given)


@dataclass(frozen=True)
class MessageAggregate:
    """An aggregate of messages: of which expression over `msg`, and what it is called."""

    function: str
    operand: Tree
    name: str


def parse_aggregate(text: str | MessageAggregate) -> MessageAggregate:
    """An aggregate as it is written.

    Raises
    ------
    UsageError
        If it is none.

    >>> parse_aggregate("sum(msg * 2) as total").name
    'total'
    """
    if isinstance(text, MessageAggregate):
        return text
    if not isinstance(text, str):
        raise UsageError(f"an aggregate of messages is text such as 'sum(msg)', not {text!r}")
    found = _NAMED.match(text)
    tree = parse_sql(found["text"] if found else text)
    return aggregate_of(tree, found["name"] if found else text.strip())


def aggregate_of(tree: Tree, name: str) -> MessageAggregate:
    """The aggregate that an expression is, under a name; a `UsageError` if it is none."""
    is_one = isinstance(tree, Computed) and tree.function in AGGREGATES
    if not (isinstance(tree, Computed) and is_one and len(tree.operands) <= 1):
        raise UsageError(
            f"an aggregate of messages is one of {', '.join(AGGREGATES)} of an expression, as in "
            f"'sum(msg) as total', and not {name!r}"
        )
    operand = tree.operands[0] if tree.operands else Named((MESSAGE,))
    return MessageAggregate(tree.function, operand, name)


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


def parse_program(columns: Mapping[str, tuple[Given | Tree, Given | Tree]]) -> Program:
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
    return {
        name: (formula(begin, name), formula(then, name)) for name, (begin, then) in columns.items()
    }


def parse_sent(
    to_source: Given | Tree | None, to_target: Given | Tree | None
) -> tuple[Formula | None, Formula | None]:
    """What is sent to sources and to targets; a `UsageError` if nothing is."""
    if to_source is None and to_target is None:
        raise UsageError("messages are sent to somewhere: give send_to_src or send_to_dst")
    return (
        None if to_source is None else formula(to_source, "messages to sources"),
        None if to_target is None else formula(to_target, "messages to targets"),
    )


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

    def batches(self) -> Iterator[Any]:
        """The edges with their vertices, as structs `src`, `edge` and `dst`, some at a time."""
        vertices, edges = struct_of(self.vertices), struct_of(self.edges)
        for low in range(0, max(len(edges), 1), PIECE):
            source, target = (taken(vertices, ends[low : low + PIECE]) for ends in self.ends)
            columns = [source, edges.slice(low, PIECE), target]
            yield pa.RecordBatch.from_arrays(columns, names=["src", "edge", "dst"])

    def sent(self, to_source: Formula | None, to_target: Formula | None) -> tuple[Ints, Any]:
        """The messages of all edges: to which record of the vertices each is, and what it says."""
        of, values = [], []
        for tree, ends in ((to_source, self.ends[0]), (to_target, self.ends[1])):
            if tree is not None:
                if isinstance(tree, Function):
                    value = tree.values(self.batches())
                else:
                    value = values_of(tree, self.lookup, len(ends))
                valid = value.is_valid()
                values.append(value.filter(valid))
                of.append(ends[valid.to_numpy(zero_copy_only=False)])
        return np.concatenate(of), _together(values)


def _of_vertices(of: Formula, table: Any) -> Any:
    if isinstance(of, Function):
        return of.values(_batches(table))
    return values_of(of, column_of(table, "vertices"), table.num_rows)


def _batches(table: Any) -> Iterator[Any]:
    batches = table.combine_chunks().to_batches(PIECE)
    return iter(batches or [pa.RecordBatch.from_pylist([], table.schema)])


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
    means: dict[int, Any] = {}
    for i, one in enumerate(aggregates):
        values = values_of(one.operand, column_of(batch, "messages"), len(to))
        if pa.types.is_boolean(values.type) and AGGREGATES[one.function] in _OF_NUMBERS:
            raise SchemaError(
                f"values that are bool cannot be put together by {one.function}: they are no "
                f"numbers, nor are they to Spark; cast them, as in 'sum(cast({MESSAGE} as int))'"
            )
        if AGGREGATES[one.function] == "mean" and _is_narrow_decimal(values.type):
            means[i] = _mean_type(values.type)
            values = values.cast(pa.decimal256(76, means[i].scale))
        if "distinct" in AGGREGATES[one.function] and pa.types.is_floating(values.type):
            values = pc.add(values, 0.0)  # or -0.0 would be another value than 0.0
        if one.function == "count_distinct":
            values = counted_nulls(values)
        columns[f"{i}"] = values
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
    for i, kind in means.items():
        table = table.set_column(i, table.schema.names[i], table.column(i).cast(kind))
    of = numbers(found.column("to").combine_chunks())
    return of, table.rename_columns([one.name for one in aggregates])


def _is_narrow_decimal(kind: Any) -> bool:
    return pa.types.is_decimal(kind) and kind.bit_width <= 128


def _mean_type(kind: Any) -> Any:
    """The type of means of decimals: with four digits more, as in Spark, where there is room."""
    more = min(4, 38 - kind.precision)
    return pa.decimal128(kind.precision + more, kind.scale + more)


@dataclass(frozen=True)
class PregelProgram:
    """A vertex program: how columns of vertices begin, and what a round makes of them."""

    columns: Program
    to_source: Formula | None
    to_target: Formula | None
    aggregate: MessageAggregate
    max_iter: int
    early_stopping: bool

    @classmethod
    def of(
        cls,
        columns: Mapping[str, tuple[Given | Tree, Given | Tree]],
        aggregate: str | MessageAggregate,
        to_source: Given | Tree | None,
        to_target: Given | Tree | None,
        max_iter: int,
        *,
        early_stopping: bool,
    ) -> PregelProgram:
        """The program, as it is written."""
        return cls(
            parse_program(columns),
            *parse_sent(to_source, to_target),
            parse_aggregate(aggregate),
            whole_number(max_iter, "max_iter of pregel"),
            early_stopping,
        )

    def in_zone(self, zone: str) -> PregelProgram:
        """The same program, whose expressions have times as they are in a zone of Spark's."""

        def zoned(of: Formula) -> Formula:
            return of if isinstance(of, Function) else in_zone(of, zone)

        to_source, to_target = (
            None if of is None else zoned(of) for of in (self.to_source, self.to_target)
        )
        return replace(
            self,
            columns={name: (zoned(a), zoned(b)) for name, (a, b) in self.columns.items()},
            to_source=to_source,
            to_target=to_target,
            aggregate=replace(self.aggregate, operand=in_zone(self.aggregate.operand, zone)),
        )

    def schema_of(self, vertices: Any, edges: Any) -> Any:
        """The Arrow schema of what it makes of vertices and edges of these schemas.

        A round without a record: what is wrong with the expressions is an error of this, and so is
        what functions raise for a batch of none.
        """
        once = replace(self, max_iter=1, early_stopping=False)
        none = np.empty(0, np.int64)
        schema = once.run(vertices.empty_table(), edges.empty_table(), (none, none)).schema
        for name in self.columns:
            if pa.types.is_null(schema.field(name).type):
                raise SchemaError(
                    f"{name!r} begins without a type: begin with 'cast(null as double)', for one, "
                    "and have a function give an array of Arrow or NumPy for no record, too"
                )
        return schema

    def run(self, vertices: Any, edges: Any, ends: tuple[Ints, Ints]) -> Any:
        """The vertices with the columns of the program, after its rounds."""
        state = self.begun(vertices)
        for _ in range(self.max_iter):
            to, said = Triplets(state, edges, ends).sent(self.to_source, self.to_target)
            if not len(to) and self.early_stopping:
                break
            state = self.updated(state, to, said)
        return state

    def begun(self, vertices: Any) -> Any:
        """The vertices with the columns of the program, as they begin."""
        state = vertices
        for name, (initial, _) in self.columns.items():
            state = with_column(state, name, _of_vertices(initial, vertices))
        return state

    def updated(self, state: Any, to: Ints, said: Any) -> Any:
        """What a round makes of the vertices, by what was said to which records of them."""
        of, found = aggregated(to, said, [self.aggregate])
        at = np.full(state.num_rows, -1, np.int64)
        at[of] = np.arange(len(of))
        received = with_column(state, MESSAGE, taken(found.column(0), at))
        for name, (_, update) in self.columns.items():
            value = _of_vertices(update, received)
            state = with_column(state, name, as_begun(name, value, state.schema.field(name).type))
        return state


def as_begun(name: str, value: Any, kind: Any) -> Any:
    """What a round makes of a column, of the type that it begins with.

    Raises
    ------
    SchemaError
        If it is of a type of which that cannot have all values, such as floats for integers; or
        an integer that does not fit.
    """
    wrong = f"{name!r} begins as {kind}, and a round makes {value.type} of it"
    if not _has_values_of(kind, value.type):
        raise SchemaError(f"{wrong}: begin with 'cast(... as double)', for one")
    try:
        return value.cast(kind)
    except pa.ArrowException as error:
        raise SchemaError(f"{wrong}: {str(error).splitlines()[0]}") from error


def _has_values_of(kind: Any, other: Any) -> bool:
    """Whether values of another type are of this, but for integers' width."""
    numeric = pa.types.is_integer(other) or pa.types.is_floating(other)
    if pa.types.is_integer(kind) and pa.types.is_integer(other):
        return True
    if pa.types.is_floating(kind) and (numeric or pa.types.is_decimal(other)):
        return True
    schemas = [pa.schema([("", one)]) for one in (kind, other)]
    try:
        unified = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException:
        return False
    return bool(unified.field("").type == kind)
