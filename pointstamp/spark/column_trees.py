"""Spark's `Column` as a tree that Arrow evaluates: of a session here, or of Spark Connect.

A Column is a tree of Spark's own, in Java or, through Connect, in Python. Both are read node by
node, and not by their text, in which dates are numbers and a name with a dot is two. What has no
node of ours is a named error here, and an unknown function one when the tree is tried.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, NoReturn

from pointstamp.errors import UsageError
from pointstamp.graph.tables.messages import MessageAggregate, aggregate_of, parse_aggregate
from pointstamp.graph.tables.sql_text import Computed, Constant, Named, Tree, parse_sql

_FUNCTIONS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "remainder",
    "negative": "negate",
    "=": "equal",
    "==": "equal",
    "<=>": "same",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "!": "not",
    "isnull": "is_null",
    "power": "pow",
    "ceiling": "ceil",
    "char_length": "length",
    "ucase": "upper",
    "lcase": "lower",
}
"""What `sql_values` calls the functions that Spark calls otherwise, in lower case."""


_EXPRESSIONS = ("ExpressionColumnNode", "CommonInlineUserDefinedFunction")


def is_column(given: Any) -> bool:
    """Whether it is a Column of Spark."""
    from pyspark.sql import Column

    return isinstance(given, Column)


OF_CONDITIONS = (
    "conditions are made of names such as col('age') or col('e.amount'), values, operators, when, "
    "cast and functions"
)
OF_PROGRAMS = (
    "messages and programs are made of names such as col('src.age'), values, operators, when, cast "
    "and functions; a function of record batches does all else"
)


def tree_of(column: Any, made_of: str = OF_PROGRAMS) -> Tree:
    """The tree of a Column.

    made_of : what there may be in it, for the message of an error

    Raises
    ------
    UsageError
        If a part of it is nothing that Arrow evaluates here: a function of Python, a window, a
        column that belongs to a DataFrame, a value of another type.
    """
    tree, _ = _read(column, made_of)
    return tree


def aggregate_tree(column: Any) -> MessageAggregate:
    """The aggregate that a Column is: `sum("msg").alias("total")`; a `UsageError` if it is none."""
    reader, node = _reader_of(column)
    if type_name(node) in ("SqlExpression", "SQLExpression"):
        return parse_aggregate(reader.text(node))
    tree, name = _read(column)
    return aggregate_of(tree, name or str(column))


def type_name(node: Any) -> str:
    """What Spark calls the kind of a node."""
    # Of an object of Java, the name of its class in Java.
    return str(node.getClass().getSimpleName() if hasattr(node, "_target_id") else _python(node))


def _python(node: Any) -> str:
    return type(node).__name__


def _reader_of(column: Any) -> tuple[type[_JavaNodes] | type[_ConnectNodes], Any]:
    if "_jc" in vars(column):  # a Column takes any name of an attribute for that of a field
        return _JavaNodes, column._jc.node()
    return _ConnectNodes, column._expr


def _read(column: Any, made_of: str = OF_PROGRAMS) -> tuple[Tree, str]:
    """The tree of a Column, and the name that it gives itself, or none."""
    reader, node = _reader_of(column)
    name = ""
    while type_name(node) in ("Alias", "ColumnAlias"):
        outer = node
        node, given = reader.alias(outer)
        name = name or given

    def refuse(part: str) -> NoReturn:
        raise UsageError(
            f"{part} of {reprlib.repr(str(column))} is nothing that Arrow evaluates here: {made_of}"
        )

    def tree(node: Any) -> Tree:
        kind = type_name(node)
        if kind in ("SqlExpression", "SQLExpression"):
            return parse_sql(reader.text(node))
        if kind in ("Alias", "ColumnAlias"):
            return tree(reader.alias(node)[0])
        if kind in ("UnresolvedAttribute", "ColumnReference"):
            parts = reader.name(node)
            return Named(parts) if parts else refuse("a column that belongs to a DataFrame")
        if kind in ("Literal", "LiteralExpression"):
            return reader.constant(node, refuse)
        if kind in ("CaseWhenOtherwise", "CaseWhen"):
            *operands, otherwise = reader.case(node)
            last = Constant(None) if otherwise is None else tree(otherwise)
            return Computed("case", (*map(tree, operands), last))
        if kind in ("Cast", "CastExpression"):
            value, to, is_plain = reader.cast(node)
            return Computed("cast" if is_plain else "try_cast", (tree(value), Constant(to)))
        if kind == "UnresolvedExtractValue":
            whole, field = map(tree, reader.extracted(node))
            if isinstance(whole, Named) and isinstance(field, Constant):
                return Named((*whole.parts, str(field.value)))
            return refuse("a part of what is computed")
        if kind == "UnresolvedFunction":
            return _function(*reader.call(node), tree)
        # Java has one node for all that is an expression already, of either kind.
        own = "a function of Python, or a column that belongs to a DataFrame,"
        return refuse(own if kind in _EXPRESSIONS else f"a {kind}")

    return tree(node), name


def _function(name: str, operands: list[Any], is_distinct: bool, tree: Callable[..., Tree]) -> Tree:
    lower = name.lower()
    if lower == "count" and type_name(operands[0]) == "UnresolvedStar":
        return Computed("count", ())
    trees = tuple(map(tree, operands))
    if is_distinct:
        return Computed(f"{lower}_distinct", trees)
    if lower == "isnotnull":
        return Computed("not", (Computed("is_null", trees),))
    if lower in ("!=", "<>"):
        return Computed("not_equal", trees)
    return Computed(_FUNCTIONS.get(lower, lower), trees)


class _JavaNodes:
    """Reads the nodes of a Column of a session here, objects of Java."""

    @staticmethod
    def text(node: Any) -> str:
        return str(node.expression())

    @staticmethod
    def alias(node: Any) -> tuple[Any, str]:
        names = _listed(node.name())
        return node.child(), str(names[0])

    @staticmethod
    def name(node: Any) -> tuple[str, ...]:
        if node.planId().isDefined():
            return ()
        return tuple(map(str, _listed(node.nameParts())))

    @staticmethod
    def constant(node: Any, refuse: Callable[[str], NoReturn]) -> Constant:
        from decimal import Decimal

        value = node.value()
        if value is None or isinstance(value, bool | int | float | str | Decimal):
            return Constant(value)
        kind = type_name(value) if hasattr(value, "_target_id") else _python(value)
        if kind in ("Date", "LocalDate"):
            return Constant(str(value.toString()), "date")
        if kind in ("Timestamp", "Instant"):
            moment = value.toInstant() if kind == "Timestamp" else value
            return Constant(str(moment.toString()), "timestamp")
        if kind == "LocalDateTime":
            return Constant(str(value.toString()), "timestamp")
        return refuse(f"a {kind}")

    @staticmethod
    def case(node: Any) -> list[Any]:
        branches = [part for pair in _listed(node.branches()) for part in (pair._1(), pair._2())]
        otherwise = node.otherwise()
        return [*branches, otherwise.get() if otherwise.isDefined() else None]

    @staticmethod
    def cast(node: Any) -> tuple[Any, str, bool]:
        return node.child(), str(node.dataType().simpleString()), not node.evalMode().isDefined()

    @staticmethod
    def extracted(node: Any) -> tuple[Any, Any]:
        return node.child(), node.extraction()

    @staticmethod
    def call(node: Any) -> tuple[str, list[Any], bool]:
        return str(node.functionName()), _listed(node.arguments()), bool(node.isDistinct())


def _listed(sequence: Any) -> list[Any]:
    """A sequence of Scala as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]


class _ConnectNodes:
    """Reads the nodes of a Column of Spark Connect, objects of Python."""

    @staticmethod
    def text(node: Any) -> str:
        return str(node._expr)

    @staticmethod
    def alias(node: Any) -> tuple[Any, str]:
        return node._child, str(node._alias[0])

    @staticmethod
    def name(node: Any) -> tuple[str, ...]:
        if node._plan_id is not None:
            return ()
        tree = parse_sql(node._unparsed_identifier)
        return tree.parts if isinstance(tree, Named) else (node._unparsed_identifier,)

    @staticmethod
    def constant(node: Any, refuse: Callable[[str], NoReturn]) -> Constant:
        from decimal import Decimal

        from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

        value, kind = node._value, node._dataType
        if isinstance(kind, DateType):
            return Constant(kind.fromInternal(value).isoformat(), "date")
        if isinstance(kind, TimestampType):
            return Constant(kind.fromInternal(value).astimezone().isoformat(), "timestamp")
        if isinstance(kind, TimestampNTZType):
            return Constant(kind.fromInternal(value).isoformat(), "timestamp")
        if value is None or isinstance(value, bool | int | float | str | Decimal):
            return Constant(value)
        return refuse(f"a {_python(value)}")

    @staticmethod
    def case(node: Any) -> list[Any]:
        branches = [part for pair in node._branches for part in pair]
        return [*branches, node._else_value]

    @staticmethod
    def cast(node: Any) -> tuple[Any, str, bool]:
        to = node._data_type
        name = to if isinstance(to, str) else to.simpleString()
        return node._expr, name.lower(), node._eval_mode is None

    @staticmethod
    def extracted(node: Any) -> tuple[Any, Any]:
        return node._child, node._extraction

    @staticmethod
    def call(node: Any) -> tuple[str, list[Any], bool]:
        return node._name, list(node._args), bool(node._is_distinct)
