"""Graphs of DataFrames, from Parquet to Parquet, with text as ids: ours, and what Spark has.

Motifs with conditions on attributes are beside Spark SQL's joins, which get the same conditions.
Components and ranks are beside GraphX. It knows numbers only, and from Python it reads and writes
text, so that ids are numbered by joins, as GraphFrames does it, and put back by others.

A small graph is measured in a session that begins, as the others are, and in one where each has
run often enough for Java to have compiled it. There a copy of its edges says what any job takes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import graphs, real_graphs
from benchmarks.harness import inputs
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
)
from benchmarks.harness.measure import repeated, timed
from benchmarks.harness.memory import peaks
from benchmarks.spark_triangles import with_heap

MOTIF_SCALES = {
    "motif of 3": {"tiny": (6,), "small": (10,), "full": (14,)},
    "motif of 4": {"tiny": (6,), "small": (10,), "full": (12,)},
}
"""Where Spark's joins take half a minute, at most."""

SCALES = {"tiny": (6,), "small": (12,), "full": (16, 18)}
"""For what takes rounds, and no joins of paths."""

REAL = "wiki-Vote-directed"

SPARK, GRAPHX = "Spark SQL, joins", "GraphX, ids numbered by joins"
COPY = "Spark, a copy through mapInArrow"
ROUNDS = 20
WARM = {"tiny": 0, "small": 2, "full": 10}
"""How often what is measured runs before, in a session that is warm."""

MOTIFS = {
    "motif of 3": (
        "(a)-[e1]->(b); (b)-[e2]->(c); (c)-[e3]->(a)",
        "e1.amount < e2.amount and e2.amount < e3.amount and a.kind = 'bank'",
    ),
    "motif of 4": (
        "(a)-[e1]->(b); (b)-[e2]->(c); (c)-[e3]->(d); (d)-[e4]->(a)",
        "e1.amount < e2.amount and e2.amount < e3.amount and e3.amount < e4.amount"
        " and a.kind = 'bank' and c.age > 50",
    ),
}

JOINS = {
    "motif of 3": """
        select struct(a.*) a, struct(e1.*) e1, struct(b.*) b, struct(e2.*) e2, struct(c.*) c,
               struct(e3.*) e3
        from edges e1 join edges e2 on e1.dst = e2.src and e1.amount < e2.amount
        join edges e3 on e2.dst = e3.src and e3.dst = e1.src and e2.amount < e3.amount
        join vertices a on a.id = e1.src and a.kind = 'bank'
        join vertices b on b.id = e1.dst join vertices c on c.id = e2.dst""",
    "motif of 4": """
        select struct(a.*) a, struct(e1.*) e1, struct(b.*) b, struct(e2.*) e2, struct(c.*) c,
               struct(e3.*) e3, struct(d.*) d, struct(e4.*) e4
        from edges e1 join edges e2 on e1.dst = e2.src and e1.amount < e2.amount
        join edges e3 on e2.dst = e3.src and e2.amount < e3.amount
        join edges e4 on e3.dst = e4.src and e4.dst = e1.src and e3.amount < e4.amount
        join vertices a on a.id = e1.src and a.kind = 'bank'
        join vertices b on b.id = e1.dst join vertices c on c.id = e2.dst and c.age > 50
        join vertices d on d.id = e3.dst""",
}

Frames = tuple[Any, Any, Any, str]
"""The session, vertices and edges, and a folder for what is in between."""


def prepare(size: Size) -> None:
    """The graphs, with directions."""
    scales = {scale for of_size in (*MOTIF_SCALES.values(), SCALES) for scale in of_size[size]}
    for scale in sorted(scales):
        graphs.save(f"rmat-{scale}-directed", graphs.rmat(scale, directed=True))
    if size != "tiny":
        real_graphs.prepare("tiny")


def from_parquet(
    name: str, make: Callable[[Frames], Any], answer: Callable[[Any], Any], warm: int
) -> Measure:
    """Time from the files of a graph to those of what `make` makes of it.

    answer : of the table that was written, when the clock has stopped
    warm : how often it runs before it is measured
    """

    def measured(effort: Effort) -> Reading:
        import pyarrow.parquet as pq

        from pointstamp.spark import session

        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            _write(name, folder)
            out = Path(folder, "out")

            def run() -> None:
                vertices, edges = (
                    spark.read.parquet(f"{folder}/{what}") for what in ("vertices", "edges")
                )
                made = make((spark, vertices, edges, f"{folder}/between"))
                made.write.parquet(str(out))

            def sample() -> tuple[float, Any]:
                for old in (out, Path(folder, "between")):
                    shutil.rmtree(old, ignore_errors=True)
                seconds, _ = timed(run)
                return seconds, answer(pq.read_table(out))

            for _ in range(warm):
                sample()
            # Joins of half a minute as often as what is quick: two runs are compared by spreads.
            often = replace(effort, once_s=inf)
            seconds, found = repeated(often, sample, lambda seconds: seconds)
            return Reading(seconds, peaks(), found)

    return measured


def _write(name: str, folder: str) -> None:
    """The graph as two files each of vertices and of edges, with text as ids and attributes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sources, targets = graphs.load(name)
    vertices = np.unique(np.concatenate([sources, targets]))
    chosen = np.random.default_rng(1)
    kinds = np.array(["bank", "shop", "person"])
    tables = {
        "vertices": {
            "id": _names(vertices),
            "kind": kinds[chosen.integers(0, 3, len(vertices))],
            "age": chosen.integers(0, 100, len(vertices)),
        },
        "edges": {
            "src": _names(sources),
            "dst": _names(targets),
            "amount": chosen.integers(0, 1000, len(sources)),
        },
    }
    for what, columns in tables.items():
        table, path = pa.table(columns), Path(folder, what)
        path.mkdir()
        half = table.num_rows // 2
        pq.write_table(table.slice(0, half), path / "0.parquet")
        pq.write_table(table.slice(half), path / "1.parquet")


def _names(numbers: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise("account", pa.array(numbers).cast(pa.string()), " ")


def matches(what: str) -> Callable[[Frames], Any]:
    """Ours: the search with its conditions inside."""

    def make(frames: Frames) -> Any:
        import pointstamp.spark

        _, vertices, edges, _ = frames
        return pointstamp.spark.graph(vertices, edges, workers=2).find(*MOTIFS[what])

    return make


def joined(what: str) -> Callable[[Frames], Any]:
    """Spark's: joins, each with what conditions can be tested in it."""

    def make(frames: Frames) -> Any:
        spark, vertices, edges, _ = frames
        vertices.createOrReplaceTempView("vertices")
        edges.createOrReplaceTempView("edges")
        return spark.sql(JOINS[what])

    return make


def copied(frames: Frames) -> Any:
    """The edges, as they are: the least that a job takes which Python has a part in."""
    _, _, edges, _ = frames
    return edges.mapInArrow(lambda batches: batches, edges.schema)


def components(frames: Frames) -> Any:
    """Ours."""
    import pointstamp.spark

    _, vertices, edges, _ = frames
    return pointstamp.spark.graph(vertices, edges, workers=2).connected_components()


def ranks(frames: Frames) -> Any:
    """Ours."""
    import pointstamp.spark

    _, vertices, edges, _ = frames
    return pointstamp.spark.graph(vertices, edges, workers=2).page_rank(max_iter=ROUNDS)


def in_graphx(run: Callable[[Any, Any], Any], becomes: str) -> Callable[[Frames], Any]:
    """What `run(jvm, graph)` of GraphX gives each vertex, beside what the vertex has."""

    def make(frames: Frames) -> Any:
        from benchmarks.graphx import read_edges

        spark, vertices, edges, between = frames
        numbers = vertices.selectExpr("id", "monotonically_increasing_id() as n").cache()
        of = edges.join(numbers.selectExpr("id as src", "n as s"), "src")
        of = of.join(numbers.selectExpr("id as dst", "n as t"), "dst")
        of.selectExpr("concat(s, ' ', t)").write.text(f"{between}/edges")
        found = run(spark._jvm, read_edges(spark, f"{between}/edges"))
        found.vertices().saveAsTextFile(f"{between}/values")
        values = spark.read.csv(f"{between}/values", "n string, value string").selectExpr(
            "cast(substring(n, 2) as long) n", "replace(value, ')', '') value"
        )
        if becomes == "component":
            names = numbers.selectExpr("id as component", "cast(n as string) value")
            values = values.join(names, "value").select("n", "component")
        else:
            values = values.selectExpr("n", f"cast(value as double) {becomes}")
        return vertices.join(numbers, "id").join(values, "n").drop("n")

    return make


def _components_of(jvm: Any, graph: Any) -> Any:
    from benchmarks.graphx import tag_of

    tag = tag_of(jvm)
    return jvm.org.apache.spark.graphx.lib.ConnectedComponents.run(graph, tag, tag)


def _ranks_of(jvm: Any, graph: Any) -> Any:
    from benchmarks.graphx import tag_of

    tag = tag_of(jvm)
    return jvm.org.apache.spark.graphx.lib.PageRank.run(graph, ROUNDS, 0.15, tag, tag)


def _sizes(table: Any) -> list[int]:
    """How many components there are, and how large the largest is; ids differ."""
    counts = table.group_by("component").aggregate([("component", "count")])
    sizes = counts.column("component_count").to_pylist()
    return [len(sizes), max(sizes)]


def _first(table: Any) -> list[Any]:
    """How many vertices, and which has the greatest rank: what is lost where edges end differs."""
    return [table.num_rows, table.sort_by([("pagerank", "descending")]).column("id")[0].as_py()]


def _rows(table: Any) -> int:
    return int(table.num_rows)


def cases(size: Size) -> list[Case]:
    """Motifs beside joins, and what takes rounds beside GraphX; three times each."""
    real = [] if size == "tiny" else [REAL]
    found = []

    def add(
        what: str, name: str, who: str, make: Callable[[Frames], Any], answer: Any, warm: int = 0
    ) -> None:
        at: dict[str, int | str] = {"what": what, "graph": name.removesuffix("-directed")}
        if warm:
            at["session"] = "warm"
        if who == OURS:
            at["workers"] = 2
        measure = with_heap(from_parquet(name, make, answer, warm))
        data = f"{what}, {name}"
        samples = 5 if warm else 3
        found.append(Case(who, measure, at=at, data=data, needs=("pyspark",), samples=samples))

    for what in MOTIFS:
        for name in [*(f"rmat-{scale}-directed" for scale in MOTIF_SCALES[what][size]), *real]:
            add(what, name, OURS, matches(what), _rows)
            add(what, name, SPARK, joined(what), _rows)
    in_rounds = (
        ("components", components, in_graphx(_components_of, "component"), _sizes),
        ("PageRank", ranks, in_graphx(_ranks_of, "pagerank"), _first),
    )
    for name in [*(f"rmat-{scale}-directed" for scale in SCALES[size]), *real]:
        for what, make, beside, answer in in_rounds:
            add(what, name, OURS, make, answer)
            add(what, name, GRAPHX, beside, answer)
    for name in real:
        add("a copy of the edges", name, COPY, copied, _rows, WARM[size])
        for what in MOTIFS:
            add(what, name, OURS, matches(what), _rows, WARM[size])
            add(what, name, SPARK, joined(what), _rows, WARM[size])
        for what, make, beside, answer in in_rounds:
            add(what, name, OURS, make, answer, WARM[size])
            add(what, name, GRAPHX, beside, answer, WARM[size])
    return found


def input_bytes(size: Size, at: At) -> int:
    """The ends as two columns of numbers."""
    return inputs.n_bytes(f"{at['graph']}-directed")


BENCHMARK = Benchmark(
    name="spark_tables",
    title="Graphs of DataFrames with string ids, on Spark, from Parquet to Parquet",
    about="Motifs with conditions on attributes, writing all matches with all attributes; "
    "components; 20 rounds of PageRank. On two slots. It runs only when named.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(SPARK, GRAPHX),
    prepare=prepare,
    input_bytes=input_bytes,
    on_all_cores=(SPARK, GRAPHX),
    when_named=True,
)
