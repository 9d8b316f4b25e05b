"""Lists to rows: a record for each element of a list that it has.

Source: `explode` of Spark and of Polars, with Spark's rule for lists that are empty or null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.linear import Change
from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.nested import ListType
from pointstamp.containers.updates import Rows
from pointstamp.errors import SchemaError

Ints = npt.NDArray[np.int64]


def exploding(schema: Schema, name: str, outer: bool, where: str) -> tuple[Change, Schema]:
    """What makes rows of the lists of a column, and the schema of these rows.

    outer : whether a list that is empty or null gives a row, too, with a null

    Raises
    ------
    SchemaError
        If the column is no list.
    """
    given = schema.column(name, where)
    kind = given.type
    if not isinstance(kind, ListType):
        raise SchemaError(
            f"operator {where!r}: column {name!r} is {kind.name}, and explode needs a list, such "
            "as array<long>"
        )
    column = Column(name, kind.element, nullable=True)
    result = Schema(tuple(column if one is given else one for one in schema.columns))
    place, into = schema.places[name], result.places[name]
    others = [one for one in schema.names if one != name]
    read = [word for one in others for word in schema.words(one)] + [schema.n_words]
    write = [word for one in others for word in result.words(one)] + [result.n_words]

    def explode(rows: Rows) -> Rows:
        lists, at = np.unique(rows[:, place], return_inverse=True)
        elements, lengths = elements_of(kind, lists)
        counts = lengths[at]
        if given.nullable:
            counts = np.where(rows[:, place - 1] != 0, counts, 0)
        n_copies = np.maximum(counts, 1) if outer else counts
        of = np.repeat(np.arange(len(rows)), n_copies)
        # The place of each in its list, and of the list among the elements of all.
        within = np.arange(len(of)) - np.repeat(np.cumsum(n_copies) - n_copies, n_copies)
        starts = np.cumsum(lengths) - lengths
        made = np.zeros((len(of), result.n_words + 1), np.int64)
        made[:, write] = rows[of][:, read]
        there = within < counts[of]
        made[there, into - 1 : into + 1] = elements[(starts[at][of] + within)[there]]
        return made

    return explode, result


def elements_of(kind: ListType, lists: Ints) -> tuple[Rows, Ints]:
    """The elements of lists, one list behind the other, and how many each has.

    lists : int64[n], words · returns (int64[m, 2], whether it is there and its word; int64[n])

    >>> from pointstamp.containers.nested import column_type_named
    >>> kind = column_type_named("array<long>")
    >>> lists = np.array([kind.to_word([7, None]), kind.to_word([])])
    >>> [found.tolist() for found in elements_of(kind, lists)]
    [[[1, 7], [0, 0]], [2, 0]]
    """
    values: list[tuple[Any, ...]] = [kind.to_value(word) for word in lists.tolist()]
    words = [
        (0, 0) if one is None else (1, kind.element.to_word(one))
        for value in values
        for one in value
    ]
    lengths = np.array([len(value) for value in values], np.int64)
    return np.array(words, np.int64).reshape(len(words), 2), lengths
