"""Programs that fail on some records, and what they should give: each record tried by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from tests.collections.running import run_epochs

SCHEMA = "a long, b long?"

Row = tuple[Any, ...]


class Fails(Exception):
    """Of the functions of these programs."""


def fails(row: Row) -> Row:
    """A function that fails on some."""
    if row[0] % 3 == 0:
        raise Fails(f"on {row[0]}")
    return (row[0] * 2, row[1])


def fails_in_between(row: Row) -> Any:
    """Rows, after the first of which it may fail."""
    yield row
    if row[1] is None:
        raise Fails
    yield (row[1], row[0])


def _divided(row: Row) -> list[Row]:
    quotient = None if row[1] is None else 6 / (row[1] - row[0])
    return [(row[0], None if quotient is None else int(quotient))]


def _chosen(row: Row) -> list[Row]:
    return [row] if row[1] is not None and 6 / row[1] > row[0] else []


@dataclass(frozen=True)
class FailingStep:
    """An operator under a policy, and what it makes of one record."""

    name: str
    build: Callable[[Any, Any], Any]
    of_record: Callable[[Row], list[Row]]


_QUOTIENT = (6 / (col("b") - col("a"))).cast("long")

STEPS = [
    FailingStep("Select", lambda t, p: t.select("a", b=_QUOTIENT, on_error=p), _divided),
    FailingStep("WithColumns", lambda t, p: t.with_columns(b=_QUOTIENT, on_error=p), _divided),
    FailingStep("Filter", lambda t, p: t.filter(6 / col("b") > col("a"), on_error=p), _chosen),
    FailingStep("Map", lambda t, p: t.map(fails, SCHEMA, on_error=p), lambda row: [fails(row)]),
    FailingStep(
        "FlatMap",
        lambda t, p: t.flat_map(fails_in_between, SCHEMA, on_error=p),
        lambda row: list(fails_in_between(row)),
    ),
]


@dataclass(frozen=True)
class Failing:
    """Steps one after the other, each with its errors, and the changes of epochs."""

    steps: tuple[int, ...]
    epochs: list[list[tuple[Row, int]]]

    def build(self, inputs: Any) -> Any:
        """The results and all errors, as rows of one schema."""
        (found,) = inputs
        all_errors = []
        for place, step in enumerate(self.steps):
            found, errors = STEPS[step].build(found, "route")
            all_errors.append(errors.select("operator", "record", place=ps.lit(place)))
        results = found.select("a", "b", operator=_TEXT, record=_TEXT, place=_LONG)
        numbers = {"a": _LONG, "b": _LONG}
        return results.concat(*(errors.with_columns(**numbers) for errors in all_errors))

    def expected(self) -> list[Counter[Row]]:
        """At each epoch."""
        now: Counter[Row] = Counter()
        found = []
        for changes in self.epochs:
            for row, diff in changes:
                now[row] += diff
            found.append(self._of(now))
        return found

    def _of(self, rows: Counter[Row]) -> Counter[Row]:
        errors: set[Row] = set()
        for place, step in enumerate(self.steps):
            made: Counter[Row] = Counter()
            for row, n in rows.items():
                try:
                    results = STEPS[step].of_record(row)
                except (Fails, ZeroDivisionError):
                    if n > 0:
                        errors.add((None, None, STEPS[step].name, repr(row), place))
                    continue
                for result in results:
                    made[result] += n
            rows = made
        found = Counter({(*row, None, None, None): n for row, n in rows.items() if n})
        return found + Counter(dict.fromkeys(errors, 1))


_TEXT, _LONG = ps.lit(None).cast("string"), ps.lit(None).cast("long")

_rows = st.tuples(st.integers(-3, 6), st.one_of(st.none(), st.integers(-3, 3)))


@st.composite
def _epochs(draw: Any) -> list[list[tuple[Row, int]]]:
    there: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 4))):
        added = draw(st.lists(st.tuples(_rows, st.integers(1, 2)), max_size=6))
        gone = draw(st.lists(st.sampled_from(there), max_size=4, unique=True)) if there else []
        for row in gone:
            there.remove(row)
        there += [row for row, _ in added]
        epochs.append([*added, *((row, -1) for row in gone)])
    return epochs


failing_programs = st.builds(
    Failing, st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=3).map(tuple), _epochs()
)


def _main(worker: ps.Worker, program: Failing, at_a_time: int) -> list[tuple[Row, int, int]]:
    epochs = [[changes] for changes in program.epochs]
    return run_epochs(worker, [SCHEMA], program.build, epochs, at_a_time)


def check_failing(program: Failing, workers: int, at_a_time: int, seed: int) -> None:
    """Results and errors are at each epoch those of trying each record that is there."""
    parts = ps.simulate(_main, program, at_a_time, workers=workers, seed=seed)
    updates = [update for part in parts for update in part]
    now: Counter[Row] = Counter()
    for epoch, expected in enumerate(program.expected()):
        for row, time, diff in updates:
            if time == epoch:
                now[row] += diff
        assert {row: n for row, n in now.items() if n} == expected, epoch
