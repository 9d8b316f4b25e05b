"""A loop over a small collection: what one more round costs.

Ten records go round an iterative scope, each changed and sent to the worker of its
key, until they are as large as the number of rounds.
"""

from __future__ import annotations

from time import perf_counter

import pointstamp as ps
from benchmarks.harness import rust
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
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.harness.memory import peaks

ROUNDS = {"tiny": 10, "small": 1_000, "full": 10_000}
SPARK_ROUNDS = {"tiny": 2, "small": 5, "full": 20}
PATHWAY_ROUNDS = {"tiny": 4, "small": 100, "full": 400}
RECORDS = 10

PLAIN, SPARK, PATHWAY = "plain Python loop", "Spark, a job per round", "Pathway, iterate"


def loop(worker: ps.Worker, rounds: int) -> Run:
    """Go round `rounds` times; the largest record leaves some rounds before the least."""
    found: list[int] = []

    def run() -> int:
        with worker.dataflow("loop") as scope:
            start = scope.to_stream(range(RECORDS) if worker.index == 0 else [])
            with scope.iterative() as inner:
                ring, cycle = inner.feedback(1)
                again = start.enter(inner).concat(cycle).exchange(lambda x: x).map(_next)
                ring.connect(again.filter(lambda x: x < rounds))
                again.leave().inspect_batch(lambda time, batch: found.append(max(batch)))
        worker.run()
        return max(found, default=0)

    return run


def _next(x: int) -> int:
    return x + 1


def plain(rounds: int) -> Run:
    """A list, changed again and again."""

    def run() -> int:
        records = list(range(RECORDS))
        largest = 0
        while records:
            records = [_next(x) for x in records]
            largest = max(largest, *records)
            records = [x for x in records if x < rounds]
        return largest

    return run


def in_spark(rounds: int) -> Measure:
    """What one does in Spark: a DataFrame made of the last, and materialised, each round."""

    def measure(effort: Effort) -> Reading:
        from pointstamp.spark import session

        with session(workers=2) as spark:
            seconds = []
            for _ in range(effort.samples + 1):
                frame = spark.range(RECORDS)
                began = perf_counter()
                for _ in range(rounds):
                    frame = frame.selectExpr("id + 1 as id").repartition(2, "id").localCheckpoint()
                seconds.append(perf_counter() - began)
            top = frame.agg({"id": "max"}).collect()[0][0]
            return Reading(seconds[1:], peaks(), top)

    return measure


def in_pathway(rounds: int) -> Measure:
    """An iteration with a limit; the time of a short one is taken off."""

    def measure(effort: Effort) -> Reading:
        seconds = [_pathway(rounds + 2) - _pathway(2) for _ in range(effort.samples)]
        return Reading(seconds, peaks())

    return measure


def _pathway(rounds: int) -> float:
    import pathway as pw

    pw.internals.parse_graph.G.clear()
    table = pw.debug.table_from_rows(pw.schema_from_types(x=int), [(x,) for x in range(RECORDS)])

    def step(table: pw.Table) -> pw.Table:
        return table.select(x=pw.this.x + 1)

    result = pw.iterate(step, iteration_limit=rounds, table=table)
    began = perf_counter()
    pw.debug.table_to_pandas(result)
    return perf_counter() - began


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four; the others as they come."""
    rounds = ROUNDS[size]
    return [
        *(
            Case(
                OURS,
                on_workers(loop, n, workers=workers, total=max),
                n,
                {"workers": workers},
                f"{n} rounds",
                in_both_modes=workers == 1,  # else it takes a minute more
            )
            for workers, n in ((1, rounds), (2, rounds), (4, max(10, rounds // 4)))
        ),
        *rust.in_rounds("loop", rounds=rounds),
        Case(PLAIN, alone(plain, rounds), rounds, {}, f"{rounds} rounds"),
        Case(
            PATHWAY, in_pathway(PATHWAY_ROUNDS[size]), PATHWAY_ROUNDS[size], {}, None, ("pathway",)
        ),
        Case(
            SPARK,
            in_spark(SPARK_ROUNDS[size]),
            SPARK_ROUNDS[size],
            {},
            None,
            ("pyspark",),
            samples=1,
        ),
    ]


BENCHMARK = Benchmark(
    name="loop_round",
    title="A round of a loop over ten records",
    about="Per round, in a scope of its own: concatenate, exchange, map, leave, filter, feedback.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(PATHWAY, PLAIN),
    floors=(PLAIN,),
    targets=(Target({"workers": 1}, 20, 10),),
)
