"""Containers that are written here are grouped, joined and windowed as those of the package are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.containers import Kind, register
from pointstamp.testing import collect


@dataclass(frozen=True)
class Notes:
    """Python values, without columns."""

    values: tuple[Any, ...]


class NotesKind(Kind[Notes]):
    name = "notes of a test"

    def length(self, batch: Notes) -> int:
        return len(batch.values)

    def records(self, batch: Notes) -> Iterator[Any]:
        return iter(batch.values)

    def slice(self, batch: Notes, start: int, stop: int) -> Notes:
        return Notes(batch.values[start:stop])

    def concat(self, batches: Sequence[Notes]) -> Notes:
        return Notes(tuple(value for batch in batches for value in batch.values))


@dataclass(frozen=True)
class Sheet:
    """Columns by name, as lists."""

    columns: dict[str, list[Any]]


class SheetKind(Kind[Sheet]):
    name = "sheet of a test"
    has_columns = True

    def length(self, batch: Sheet) -> int:
        return len(next(iter(batch.columns.values())))

    def records(self, batch: Sheet) -> Iterator[Any]:
        return zip(*batch.columns.values(), strict=True)

    def slice(self, batch: Sheet, start: int, stop: int) -> Sheet:
        return Sheet({name: values[start:stop] for name, values in batch.columns.items()})

    def concat(self, batches: Sequence[Sheet]) -> Sheet:
        return Sheet(
            {name: [v for b in batches for v in b.columns[name]] for name in self.names(batches[0])}
        )

    def names(self, batch: Sheet) -> Sequence[str]:
        return list(batch.columns)

    def column(self, batch: Sheet, chosen: Any, operator: str) -> Any:
        if chosen in batch.columns:
            return batch.columns[chosen]
        return super().column(batch, chosen, operator)

    def with_columns(self, batch: Sheet, more: Mapping[str, Any]) -> Sheet:
        return Sheet({**batch.columns, **{name: list(np.asarray(v)) for name, v in more.items()}})

    def paired(self, left: Sheet, right: Sheet, key: Sequence[str], suffix: str) -> Sheet:
        more = {f"{n}{suffix if n in left.columns else ''}": v for n, v in right.columns.items()}
        return Sheet(
            {**left.columns, **{n: v for n, v in more.items() if n.removesuffix(suffix) not in key}}
        )


register(Notes, NotesKind())
register(Sheet, SheetKind())

LEFT = [("a", 1), ("b", 2), ("a", 14)]
RIGHT = [("a", 3), ("c", 4)]


def notes(records: Any) -> Any:
    return Notes(tuple(records))


def sheet(records: Any) -> Any:
    return Sheet({"k": [k for k, _ in records], "t": [t for _, t in records]})


def stream_of(scope: Any, make: Any, records: Any) -> Any:
    return scope.batches_to_stream([make(records)] if scope.index == 0 else [])


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(9)], ids=repr)
def test_values_without_columns_are_windowed_and_counted(windows: Any) -> None:
    time, key = (lambda r: r[1]), (lambda r: r[0])
    found = collect(lambda s: stream_of(s, notes, LEFT).window(windows, time, key)[0])
    assert sorted((w.key, sorted(w.records)) for _, w in found) == [
        ("a", [("a", 1)]), ("a", [("a", 14)]), ("b", [("b", 2)])]  # fmt: skip
    counts = collect(lambda s: stream_of(s, notes, LEFT).count_window(windows, time, key)[0])
    assert sorted((w.key, w.value) for _, w in counts) == [("a", 1), ("a", 1), ("b", 1)]
    top = collect(lambda s: stream_of(s, notes, LEFT).top_k(1, time, key))
    assert top == [(0, ("a", 14)), (0, ("b", 2))]


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(9)], ids=repr)
def test_columns_of_lists_are_windowed(windows: Any) -> None:
    found = collect(lambda s: stream_of(s, sheet, LEFT).window(windows, "t", "k")[0])
    assert sorted(record[:2] for _, record in found) == sorted(LEFT)
    bounds = {(r[2], r[3]) for _, r in found}
    assert bounds == ({(0, 10), (10, 20)} if isinstance(windows, ps.Sliding) else
                      {(1, 10), (2, 11), (14, 23)})  # fmt: skip


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("make", [notes, sheet])
def test_they_are_joined(make: Any, retain: bool) -> None:
    key: Any = (lambda r: r[0]) if make is notes else "k"

    def joined(how: Any) -> Any:
        def build(scope: Any) -> Any:
            left, right = (stream_of(scope, make, records) for records in (LEFT, RIGHT))
            return left.join(right, key, how=how, retain=retain)

        return sorted((record for _, record in collect(build)), key=repr)

    if make is notes:
        assert joined("inner") == [(("a", 1), ("a", 3)), (("a", 14), ("a", 3))]
    else:
        assert joined("inner") == [("a", 1, 3), ("a", 14, 3)]
    if retain:
        return
    assert joined("semi") == [("a", 1), ("a", 14)]
    assert joined("anti") == [("b", 2)]
    if make is notes:
        assert len(joined("full")) == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_joined_with_those_of_another_container(workers: int) -> None:
    def build(scope: Any) -> Any:
        left, right = stream_of(scope, notes, LEFT), stream_of(scope, list, RIGHT)
        return left.join(right, lambda record: record[0])

    pairs = [(("a", 1), ("a", 3)), (("a", 14), ("a", 3))]
    assert sorted(record for _, record in collect(build, workers)) == pairs
