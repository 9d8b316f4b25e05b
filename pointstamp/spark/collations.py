"""Text with a collation in expressions: Arrow compares bytes, and would find other text equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pointstamp.errors import SchemaError
from pointstamp.graph.tables.messages import Function, PregelProgram
from pointstamp.graph.tables.path_search import prefixed
from pointstamp.graph.tables.sql_text import Computed, Constant, Named, Tree

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_OF_NULLS = frozenset(["is_null", "isnull", "isnotnull"])
"""What is asked of these is the same in every collation."""


def has_collation(kind: DataType) -> bool:
    """Whether text of a type of Spark, or in it, is compared otherwise than by its bytes."""
    return " collate " in kind.simpleString()


def check_program(program: PregelProgram, structs: Mapping[str, StructType]) -> None:
    """Refuse a program whose expressions are on such attributes; functions see to it themselves.

    structs : the columns of a "vertex" and of an "edge"

    Raises
    ------
    SchemaError
        As `check_collations`.
    """
    of_ends = {"src": structs["vertex"], "edge": structs["edge"], "dst": structs["vertex"]}
    own = [(name,) for name in program.columns]
    for sent in (program.to_source, program.to_target):
        if sent is not None and not isinstance(sent, Function):
            for name in _values_in(sent):
                if name.parts[0] == "edge" or name.parts[1:2] not in own:
                    check_collations(name, of_ends)
    for begin, round_ in program.columns.values():
        for formula, own_columns in ((begin, ()), (round_, program.columns)):
            if not isinstance(formula, Function):
                names = [n for n in _values_in(formula) if n.parts[0] not in own_columns]
                for name in names:
                    check_collations(prefixed(name, "vertex"), structs)


def check_collations(condition: Tree, schemas: Mapping[str, StructType]) -> None:
    """Refuse a condition on attributes that are text with a collation.

    schemas : the columns of each element that names in the condition begin with

    Raises
    ------
    SchemaError
        If it asks more of one than whether it is null.
    """
    for name in _values_in(condition):
        of = schemas.get(name.parts[0]) if len(name.parts) > 1 else None
        field = None if of is None or name.parts[1] not in of.names else of[name.parts[1]]
        if field is not None and has_collation(field.dataType):
            whole, column = ".".join(name.parts), ".".join(name.parts[1:])
            raise SchemaError(
                f"{whole!r} is {field.dataType.simpleString()}, in which texts that differ may be "
                "equal, and this compares bytes: give the graph a column without a "
                f"collation, such as lower({column}) collate UTF8_BINARY"
            )


def _values_in(tree: Tree) -> list[Named]:
    """The names whose values matter, and not only whether there is one."""
    if isinstance(tree, Named):
        return [tree]
    if isinstance(tree, Constant) or (isinstance(tree, Computed) and tree.function in _OF_NULLS):
        return []
    return [name for part in tree.operands for name in _values_in(part)]
