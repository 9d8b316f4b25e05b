"""TPC-H kept up to date: each of the 22 queries under orders that come and go.

The tables are those of scale 0.1, some 870,000 records. In an epoch 100 orders come and the 100
oldest go, each with its lines. Ours has the answer when the changes of the result are out, from
columns in Arrow on. DuckDB has the tables as its own, and recomputes; what it takes to bring
the orders into them and out is not counted. A sample is the median of the epochs of a round.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness import inputs
from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)
from benchmarks.harness.memory import peaks
from benchmarks.tpch_queries import BUILDS, tables_of
from benchmarks.tpch_sql import Recomputed, sql_of, summary
from benchmarks.tpch_tables import SCHEMAS, Refreshes, Tables

DUCKDB = "DuckDB"
SCALES = {"tiny": 0.001, "small": 0.01, "full": 0.1}
ORDERS = {"tiny": 5, "small": 100, "full": 100}
EPOCHS = {"tiny": 2, "small": 5, "full": 10}
"""Of a sample."""

Round = Callable[[tuple[Any, Any], tuple[Any, Any]], float]
"""Takes in the orders that come and go, with their lines; the seconds that count."""

_CHANGING = ("orders", "lineitem")


def prepare(size: Size) -> None:
    """The tables, and the orders that come."""
    source = Tables(SCALES[size])
    tables = source.all()
    # Half of the orders at most are gone in the end.
    new = source.orders(len(tables["orders"]) // 2)
    for name, table in [*tables.items(), *zip(("new", "new_lines"), new, strict=True)]:
        _write(name, table)


def _write(name: str, table: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(str(inputs.folder() / f"{name}.arrow"), table.schema) as file:
        file.write_batch(table)


def _read(name: str) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(inputs.folder() / f"{name}.arrow")) as file:
        return pa.ipc.open_file(file).get_batch(0)


def _refreshes() -> Refreshes:
    return Refreshes((_read("orders"), _read("lineitem")), (_read("new"), _read("new_lines")))


def kept(number: int, size: Size) -> Measure:
    """A query as a view of the tables that it reads."""
    build = BUILDS[number]
    names = tables_of(build)

    def measure(effort: Effort) -> Reading:
        with ps.View(build, **{name: SCHEMAS[name] for name in names}) as view:
            for name in names:
                view.insert(name, _read(name))
            view.advance()
            gc.collect()

            def epoch(come: tuple[Any, Any], gone: tuple[Any, Any]) -> float:
                began = perf_counter()
                for name, some, others in zip(_CHANGING, come, gone, strict=True):
                    if name in names:
                        view.insert(name, some)
                        view.delete(name, others)
                view.advance()
                return perf_counter() - began

            seconds = _samples(effort, size, epoch)
            return Reading(seconds, peaks(), summary(list(view.snapshot())))

    return measure


def recomputed(number: int, size: Size) -> Measure:
    """The same in SQL, from scratch."""
    query = sql_of(number)

    def measure(effort: Effort) -> Reading:
        tables = Recomputed({name: _read(name) for name in SCHEMAS})

        def epoch(come: tuple[Any, Any], gone: tuple[Any, Any]) -> float:
            tables.refresh(come, gone)
            began = perf_counter()
            tables.answer(query)
            return perf_counter() - began

        seconds = _samples(effort, size, epoch)
        return Reading(seconds, peaks(), summary(tables.answer(query)))

    return measure


def _samples(effort: Effort, size: Size, epoch: Round) -> list[float]:
    """The medians of as many rounds as are wanted, without the first round."""
    refreshes = _refreshes()

    def sample() -> float:
        return median(epoch(*refreshes.take(ORDERS[size])) for _ in range(EPOCHS[size]))

    return [sample() for _ in range(effort.samples + 1)][1:]


def cases(size: Size) -> list[Case]:
    """Each query, kept up to date and recomputed."""
    found = []
    for number in BUILDS:
        at, data = {"query": number}, f"query {number}"
        found.append(Case(OURS, kept(number, size), at=at, data=data))
        found.append(Case(DUCKDB, recomputed(number, size), at=at, data=data, needs=("duckdb",)))
    return found


BENCHMARK = Benchmark(
    name="tpch",
    title="TPC-H, scale 0.1: 22 queries kept up to date, 100 orders in and 100 out",
    about="From Arrow columns, some 500 records inserted and 500 deleted, to the changes of the "
    "answer; DuckDB recomputes the query, and loading the records into its tables is not "
    "counted. The target is that of the slowest query.",
    quantity=Quantity("ms per epoch", 1e3),
    cases=cases,
    baselines=(DUCKDB,),
    on_all_cores=(DUCKDB,),
    targets=tuple(Target({"query": number}, 30.0, 10.0) for number in BUILDS),
    prepare=prepare,
)
