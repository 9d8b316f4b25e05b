"""A hundred rounds of a loop in one epoch of a service, and a hundred jobs of Spark.

A walk along a path of a hundred edges, one edge a round: who is at a vertex looks up where
its edges go. In the service the loop is a part of the dataflow, and the workers agree on each
round; the program sends the start and waits for the end. With Spark the program makes a job for
each round: the edges, which are cached, joined with where the last round has come to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.measure import timed
from benchmarks.harness.memory import peaks
from benchmarks.spark_streams import shared

ROUNDS = {"tiny": 5, "small": 100, "full": 100}
EPOCHS = {"tiny": 3, "small": 50, "full": 100}

PATIENCE_S = 20.0
"""After so long there are no more samples of Spark."""

JOBS = "Spark, a job per round"
PLACE = pa.schema({"vertex": pa.int64()})

Start = Callable[..., ps.Service]


def walk(scope: ps.Scope, starts: ps.Stream[Any], n_rounds: int) -> ps.Stream[Any]:
    """Where each walk ends."""
    edges = pa.table({"vertex": np.arange(n_rounds), "next": np.arange(1, n_rounds + 1)})

    def go_on(batch: pa.RecordBatch) -> pa.RecordBatch:
        reached = edges.filter(pc.is_in(edges["vertex"], batch["vertex"]))["next"]
        return pa.RecordBatch.from_arrays([reached.combine_chunks()], schema=PLACE)

    with scope.iterative() as inner:
        back, again = inner.feedback(1)
        here = starts.enter(inner).concat(again).exchange("vertex")
        back.connect(here.filter(pc.field("vertex") < n_rounds).map_batches(go_on))
        return here.filter(pc.field("vertex") == n_rounds).leave()


def in_service(make: Callable[[], Start], n_rounds: int, n_epochs: int) -> Measure:
    """Seconds from sending the start of an epoch to having read where it ends."""

    def measure(effort: Effort) -> Reading:
        build = partial(_built, n_rounds=n_rounds)
        with make()(build, inputs={"starts": PLACE}, outputs={"ends": PLACE}) as service:
            seconds, answers = [], set()
            for epoch in range(n_epochs + n_epochs // 5):
                took, ends = timed(partial(_walked, service, epoch))
                seconds.append(took)
                answers.update(ends)
            (answer,) = answers
            return Reading(seconds[n_epochs // 5 :], peaks(), answer)

    return measure


def _built(scope: ps.Scope, starts: ps.Stream[Any], n_rounds: int = 0) -> ps.Stream[Any]:
    return walk(scope, starts, n_rounds)


def _walked(service: ps.Service, epoch: int) -> list[int]:
    input, output = service.input("starts"), service.output("ends")
    input.send([{"vertex": 0}])
    input.advance_to(epoch + 1)
    ends: list[int] = output.collect(epoch, after=epoch - 1)["vertex"].to_pylist()
    output.discard(epoch)
    return ends


def in_jobs(n_rounds: int) -> Measure:
    """The same, round by round."""

    def measure(effort: Effort) -> Reading:
        from pyspark.sql.functions import broadcast

        spark = shared()
        edges = spark.range(n_rounds).selectExpr("id as vertex", "id + 1 as next").cache()
        edges.count()

        def run(rounds: int) -> int:
            here = [(0,)]
            for _ in range(rounds):
                places = spark.createDataFrame(here, "vertex long")
                here = edges.join(broadcast(places), "vertex").select("next").collect()
            return int(here[0][0])

        run(-(-n_rounds // 10))  # as much as is thrown away elsewhere, and not another hundred
        seconds: list[float] = []
        while len(seconds) < effort.samples and sum(seconds) < PATIENCE_S:
            took, answer = timed(partial(run, n_rounds))
            seconds.append(took)
        edges.unpersist()
        return Reading(seconds, peaks(), answer)

    return measure


def cases(size: Size) -> list[Case]:
    """Ours on two workers of each kind, and Spark."""
    n, n_epochs = ROUNDS[size], EPOCHS[size]
    found = [
        Case(
            OURS,
            in_service(
                lambda given=threads: partial(ps.serve, workers=2, threads=given), n, n_epochs
            ),
            at={"sent to": name},
            data="path",
        )
        for name, threads in (("threads", True), ("processes", False))
    ]
    with_spark: dict[str, Any] = {"data": "path", "needs": ("pyspark",), "session": "Spark"}
    tasks = in_service(_on_spark, n, n_epochs)
    found.append(Case(OURS, tasks, at={"sent to": "tasks of Spark"}, **with_spark))
    found.append(Case(JOBS, in_jobs(n), samples=3, **with_spark))
    return found


def _on_spark() -> Start:
    from pointstamp.spark import serve

    return partial(serve, spark=shared(), workers=2)


BENCHMARK = Benchmark(
    name="service_loop",
    title="A hundred rounds in one epoch, and a hundred jobs of Spark",
    about="A walk along a path, one edge per round, on two workers: the time from sending its "
    "start to reading its end. A sample of ours is an epoch, one of Spark's a hundred jobs.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(JOBS,),
    tells_p99=True,
    when_named=True,
)
