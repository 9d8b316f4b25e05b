"""The keys of a join on both sides, over all workers: whether they can be compared at all.

Keys of which none can be equal, such as texts and numbers, are refused rather than joined to
nothing. Where both sides come to one worker at a time it sees that itself. But records go where the
hash of their key says: with few keys one side may come to this worker alone, and the other to
another, or at another time. So each worker notes and publishes what keys it has, and whether a join
is refused does not depend on how many workers there are.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pointstamp.containers.join_index import (
    check_one_kind,
    check_values,
    name_of_rows,
    types_of_key,
    values_of,
)
from pointstamp.containers.registry import kind_of
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.operator_error import operator_error
from pointstamp.errors import SchemaError

Values: TypeAlias = tuple[str | None, ...]
"""Of each column of a key; see `join_index.values_of`."""


class JoinedKeys:
    """What comes to both sides of a join, on all workers.

    Parameters
    ----------
    keys : tuple
        Of the left side and of the right side, as for `Stream.join`.
    takes_any_rows : bool
        Whether containers without columns are joined with those of any other such kind.
    """

    def __init__(
        self, keys: tuple[Any, Any], info: OperatorInfo, *, takes_any_rows: bool = False
    ) -> None:
        self._keys = keys
        self._takes_any_rows = takes_any_rows
        self._name = info.name
        self._last: list[Any] = [None, None]
        """Per side, the kind of container that came last, and the types of its key."""
        self._known: tuple[dict[tuple[str, Values], list[str]], ...] = ({}, {})
        """Per side, by kind of container and values: types that have these."""
        comparisons, closers = info.environment.comparisons, info.environment.closers
        self._publish, end = comparisons.add(self._receive)
        closers.at_end(end)

    def see(self, side: int, batch: Any) -> None:
        """Look at a batch that has come to the left side, 0, or to the right one, 1.

        Raises
        ------
        SchemaError
            If its keys cannot be compared with those of the other side.
        """
        kind = kind_of(batch)
        types = types_of_key(batch, self._keys[side])
        seen = (kind, types)
        if seen == self._last[side]:
            return
        self._last[side] = seen
        name = name_of_rows(batch) if self._takes_any_rows else kind.name
        found = name, tuple(map(values_of, types))
        if found not in self._known[side]:
            said = [*map(str, types)]
            self._publish((side, *found, said))
            self._compare(side, found, said)

    def _receive(self, published: tuple[int, str, Values, list[str]]) -> None:
        side, kind, values, said = published
        try:
            self._compare(side, (kind, values), said)
        except SchemaError as error:
            raise operator_error(error, self._name, None) from error

    def _compare(self, side: int, found: tuple[str, Values], said: list[str]) -> None:
        self._known[side][found] = said
        for (kind, values), others_said in self._known[1 - side].items():
            check_one_kind(found[0], kind)
            check_values(zip(said, found[1], strict=True), zip(others_said, values, strict=True))
