"""Window functions: what is stored of the records of a window, and what is made of them.

Each has three parts. `prepare` makes what is stored of a batch, `combine` makes fewer records
of what is stored, where that can be, and `finish` makes the container that is sent for windows
that are complete. So a count stores a number for each key and window, a fold over records their
records with their times, since it goes in the order of event time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Protocol

import numpy as np

from pointstamp.containers import kind_of
from pointstamp.containers.batch_join import How, check_joinable, joined
from pointstamp.containers.event_times import EventTimes, Ints
from pointstamp.containers.keys import canonical_key, hashable_key
from pointstamp.containers.registry import n_records
from pointstamp.dataflow.error_policy import ErrorPolicy
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.errors import BuildError, ColumnError
from pointstamp.operators.joined_keys import JoinedKeys
from pointstamp.operators.window_assigners import Window, WindowResult
from pointstamp.operators.window_state import Pane


class WindowFunction(Protocol):
    """What is stored of records, and what is made of complete windows."""

    stored: str
    """What is stored, in words: a snapshot of something else is refused."""

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """What is stored of a batch of one window, a container.

        times : int64[n], the event times
        """

    def combine(self, stored: Any) -> Any:
        """The same in fewer records, where that can be."""

    def stored_key(self, side: int, key: Any) -> Any:
        """The key of what is stored, by which it is found again."""

    def finish(self, panes: list[Pane], times: EventTimes) -> Any:
        """What is sent for windows that end together, a container, or None for nothing."""


class Collect:
    """The records themselves: of rows a `Window`, of columns with the bounds as columns."""

    stored = "records"

    def __init__(self, key: Any) -> None:
        self._key = key

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """All."""
        return batch

    def combine(self, stored: Any) -> Any:
        """All."""
        return stored

    def stored_key(self, side: int, key: Any) -> Any:
        """As it was."""
        return key

    def finish(self, panes: list[Pane], times: EventTimes) -> Any:
        """Rows by window and key; columns in one batch."""
        wholes = [_whole(pane.parts[0]) for pane in panes]
        return _answers(panes, wholes, times, self._rows_of)

    def _rows_of(self, whole: Any, start: Any, end: Any) -> Iterator[Any]:
        for key, part in groups(whole, self._key):
            yield Window(key, start, end, kind_of(part).units(part))


class Combined:
    """One value for each key, of which parts can be combined: counts, sums, a reduction.

    Parameters
    ----------
    of_rows, of_columns : Aggregates
        Of records that are Python values, and of those that consist of columns.
    stored : str
        What the values are.
    """

    def __init__(self, of_rows: Aggregates, of_columns: Aggregates, stored: str) -> None:
        self._of_rows = of_rows
        self._of_columns = of_columns
        self.stored = stored

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """The value of each key of the batch."""
        return self._for(batch).prepare(batch)

    def combine(self, stored: Any) -> Any:
        """One value for each key."""
        return self._for(stored).combine(stored)

    def _for(self, batch: Any) -> Aggregates:
        # Here and not behind the kind: what a window is reduced by are functions of Python
        # values for the ones and names of columns for the others, and no kind knows either.
        return self._of_columns if kind_of(batch).has_columns else self._of_rows

    def stored_key(self, side: int, key: Any) -> Any:
        """Of pairs the first; of columns the same columns."""
        return pair_key if key is None or callable(key) else key

    def finish(self, panes: list[Pane], times: EventTimes) -> Any:
        """A `WindowResult` for each key; or a record with the columns of the key and the bounds."""
        wholes = [_whole(pane.parts[0]) for pane in panes]
        return _answers(panes, self._for(wholes[0]).finish(wholes), times, _results)


class Aggregates(Protocol):
    """How the records of each key are aggregated, part by part."""

    def prepare(self, batch: Any) -> Any:
        """Of a batch, one record for each key."""

    def combine(self, stored: Any) -> Any:
        """Of such records, one for each key."""

    def finish(self, wholes: list[Any]) -> list[Any]:
        """The answer for each window, of what is stored of it: of rows pairs of key and value."""


class AggregatedRows:
    """A value for each key of Python values.

    Parameters
    ----------
    of : callable
        What a record adds to the value.
    add : callable
        Of two values of one key, the value of both; associative and commutative.
    """

    def __init__(self, key: Any, of: Callable[[Any], Any], add: Callable[[Any, Any], Any]) -> None:
        self._key = key
        self._of = of
        self._add = add

    def prepare(self, batch: Any) -> Any:
        """Pairs of key and value."""
        of, kind = self._of, kind_of(batch)
        if self._key is None:
            return self._added((None, of(record)) for record in kind.records(batch))
        keyed = kind.keyed(batch, self._key, "a window")
        return self._added((key, of(record)) for key, record in keyed)

    def combine(self, stored: Any) -> Any:
        """One pair for each key."""
        # What was restored has NaNs of its own.
        return self._added((canonical_key(key), value) for key, value in stored)

    def _added(self, stored: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        values: dict[Any, Any] = {}
        add = self._add
        for key, value in stored:
            values[key] = add(values[key], value) if key in values else value
        return list(values.items())

    def finish(self, wholes: list[Any]) -> list[Any]:
        """The pairs."""
        return list(map(self.combine, wholes))


class AggregatedColumns:
    """Aggregates of columns by name, as for `Stream.aggregate`.

    Where parts cannot be combined (means) the records are stored, of the columns that are needed.
    """

    def __init__(self, key: Any, aggregates: list[Any], operator: str) -> None:
        # Here and not above: it is Arrow, which programs without columns do not import.
        from pointstamp.containers.named_aggregates import AggregatesByName

        self._key = key
        self._parts = AggregatesByName(key if key is not None else [], aggregates, operator)
        named = [*map(tuple, aggregates)]
        self.stored = str(named) if self._parts.combines else f"columns {self._parts.columns}"

    def prepare(self, batch: Any) -> Any:
        """The aggregates of the batch, or the columns of the batch that are needed."""
        return self._parts.part([batch])

    def combine(self, stored: Any) -> Any:
        """The aggregates of several batches."""
        return self._parts.whole([stored]) if self._parts.combines else stored

    def finish(self, wholes: list[Any]) -> list[Any]:
        """The aggregates of each."""
        return self._parts.wholes(wholes)


class CountColumns:
    """The number of records of each key of columns, as the column `count`."""

    def __init__(self, key: Any, operator: str) -> None:
        self._key = key if key is not None else []
        self._operator = operator
        self._of: Any = None
        """The columns of the last batch that Arrow grouped."""
        names = [] if callable(key) else [key] if isinstance(key, str) else self._key
        if "count" in names:
            raise BuildError(
                f"{operator} calls its answer 'count', as a column of its key is called: rename "
                "that column first"
            )

    def prepare(self, batch: Any) -> Any:
        """Of a batch."""
        # Here and not above: it is Arrow, which programs without columns do not import.
        from pointstamp.containers.named_aggregates import WORTH_GROUPING, ones

        kind = kind_of(batch)
        if (schema := kind.schema(batch)) == self._of and kind.length(batch) < WORTH_GROUPING:
            return ones(kind.to_arrow(batch), self._key, "count")
        counted = self._counted(batch, self._key, ([], "count_all"))
        self._of = schema  # with all columns of the key
        return counted

    def combine(self, stored: Any) -> Any:
        """Of several counts, their sum."""
        return self._counted(stored, self._key, ("count", "sum"))

    def finish(self, wholes: list[Any]) -> list[Any]:
        """The counts of each."""
        from pointstamp.containers.named_aggregates import aggregate_each

        def counts(batch: Any, key: Any) -> Any:
            return self._counted(batch, key, ("count", "sum"))

        return aggregate_each(wholes, self._key, counts)

    def _counted(self, batch: Any, key: Any, aggregate: tuple[Any, str]) -> Any:
        from pointstamp.containers.named_aggregates import aggregate_batch

        answer = aggregate_batch(batch, key, [aggregate], self._operator)
        return answer.rename_columns([*answer.schema.names[:-1], "count"])


def refuse_rows(operator: str) -> Callable[..., Any]:
    """Stands where aggregates are of columns by name, and rows have none."""

    def refuse(*records: Any) -> Any:
        raise ColumnError(
            f"{operator} was given rows, such as {records[0]!r:.200}, and aggregates of columns by "
            "name: give a function fold(key, record, value)"
        )

    return refuse


class RowsOnly:
    """Stands where there is nothing for columns."""

    def __init__(self, operator: str, advice: str) -> None:
        self._operator = operator
        self._advice = advice

    def prepare(self, batch: Any) -> Any:
        """Refused."""
        raise ColumnError(
            f"{self._operator} was given batches of {kind_of(batch).name}, and a function of "
            f"records: {self._advice}"
        )

    combine = finish = prepare


class Fold:
    """A fold over the records of each key, in the order of event time.

    Of columns the fold is called once for each key and window, with all its records.

    Parameters
    ----------
    policy : ErrorPolicy, optional
        Takes what the fold raises; those to be sent are among the results, as `Failed`.
    """

    stored = "records by time"

    def __init__(
        self,
        key: Any,
        fold: Callable[[Any, Any, Any], Any],
        default: Any,
        operator: str,
        policy: ErrorPolicy | None = None,
    ) -> None:
        self._key = key
        self._fold = fold
        self._default = default
        self._operator = operator
        self._policy = policy

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """Rows with their event times; columns as they are."""
        return kind_of(batch).with_times(batch, times)

    def combine(self, stored: Any) -> Any:
        """All: the order of records counts."""
        return stored

    def stored_key(self, side: int, key: Any) -> Any:
        """Of pairs of event time and record the record's."""
        if key is None or not callable(key):
            return key
        return lambda timed: key(timed[1])

    def finish(self, panes: list[Pane], times: EventTimes) -> Any:
        """A `WindowResult` for each key and window."""
        results: list[Any] = [
            WindowResult(key, times.value(pane.start), times.value(pane.end), value)
            for pane in panes
            for key, value in self._folded(pane, times)
        ]
        return results if self._policy is None else results + self._policy.take()

    def _folded(self, pane: Pane, times: EventTimes) -> Iterator[tuple[Any, Any]]:
        whole = _whole(pane.parts[0])
        kind = kind_of(whole)
        records = kind.by_times(whole)
        # Rows were kept with their times. Those of columns are among them, and parts come in the
        # order of their arrival.
        if kind.has_columns and times.time is not None:
            records = kind.take(whole, np.argsort(times.read(whole), kind="stable"))
        # A session is of one key, so there is nothing to group.
        is_of_one = pane.key is not None
        by_key = [(pane.key, records)] if is_of_one else groups(records, self._key, self._operator)
        for key, of_key in by_key:
            yield from self._value(key, of_key)

    def _value(self, key: Any, of_key: Any) -> Iterator[tuple[Any, Any]]:
        """The key and its value; nothing if the fold failed on every record."""
        kind = kind_of(of_key)
        units = kind.units(of_key)
        value = deepcopy(self._default)
        is_any = False
        for unit in units:
            try:
                value = self._fold(key, unit, value)
                is_any = True
            except Exception as error:
                if self._policy is None:
                    raise
                self._policy.note(unit, error, kind.length(of_key) // len(units))
        if is_any:
            yield key, value


class Join:
    """Pairs of records of two sides of equal key, in the same window."""

    stored = "records of both sides"

    def __init__(self, keys: tuple[Any, Any], how: How, schemas: tuple[Any, Any]) -> None:
        self._keys = keys
        self._how = how
        self._schemas = list(schemas)
        self._like: list[Any] = [None, None]
        """Of each side a batch without records, like the last that has come."""
        self._joined_keys: JoinedKeys | None = None

    def begin(self, info: OperatorInfo) -> None:
        """Compare keys with those of other times, and those that come to other workers."""
        self._joined_keys = JoinedKeys(self._keys, info)

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """All; raises where they cannot be joined, which is known long before a window ends."""
        kind, like = kind_of(batch), self._like[side]
        schema = kind.schema(batch)
        if like is None or kind_of(like) is not kind or kind.schema(like) != schema:
            self._like[side] = kind.take(batch, np.empty(0, np.int64))
            check_joinable(self._like[0], self._like[1], self._keys)
            if self._joined_keys is not None:
                self._joined_keys.see(side, batch)
        if schema is not None:
            self._schemas[side] = schema
        return batch

    def combine(self, stored: Any) -> Any:
        """All."""
        return stored

    def stored_key(self, side: int, key: Any) -> Any:
        """As it was."""
        return key

    def finish(self, panes: list[Pane], times: EventTimes) -> Any:
        """A `WindowResult` for each pair; of columns one batch with the bounds."""
        found = []
        for pane in panes:
            sides = [_whole(parts) if parts else None for parts in pane.parts]
            pairs = joined(
                sides[0], sides[1], self._keys, self._how, (self._schemas[0], self._schemas[1])
            )
            if pairs is not None and n_records(pairs):
                found.append((pane, pairs))
        if not found:
            return None
        of, pairs_of = zip(*found, strict=True)
        return _answers(of, pairs_of, times, self._rows_of)

    def _rows_of(self, pairs: Any, start: Any, end: Any) -> Iterator[Any]:
        return (WindowResult(self._key_of(pair), start, end, pair) for pair in pairs)

    def _key_of(self, pair: Any) -> Any:
        if self._how in ("semi", "anti"):
            record, key = pair, self._keys[0]
        else:
            side = 0 if pair[0] is not None else 1
            record, key = pair[side], self._keys[side]
        return record if key is None else hashable_key(key(record))


def groups(batch: Any, key: Any, operator: str = "a window") -> Iterator[tuple[Any, Any]]:
    """The records of each key; without a key all of them."""
    return iter([(None, batch)]) if key is None else kind_of(batch).group(batch, key, operator)


def pair_key(pair: tuple[Any, Any]) -> Any:
    """The key of a stored value."""
    return pair[0]


def _results(pairs: Any, start: Any, end: Any) -> Iterator[Any]:
    return (WindowResult(key, start, end, value) for key, value in pairs)


def _whole(parts: list[Any]) -> Any:
    return kind_of(parts[0]).concat(parts)


def _answers(
    panes: Sequence[Pane],
    wholes: Sequence[Any],
    times: EventTimes,
    rows_of: Callable[[Any, Any, Any], Iterable[Any]],
) -> Any:
    """What is sent for windows: the rows of each, of (whole, start, end); or bounds as columns."""

    def to_rows(number: int, whole: Any) -> Iterable[Any]:
        pane = panes[number]
        return rows_of(whole, times.value(pane.start), times.value(pane.end))

    def to_columns(whole: Any, numbers: Ints) -> Any:
        starts = np.array([pane.start for pane in panes], np.int64)
        ends = np.array([pane.end for pane in panes], np.int64)
        return times.with_bounds(whole, starts[numbers], ends[numbers])

    return kind_of(wholes[0]).labelled(wholes, to_rows, to_columns)
