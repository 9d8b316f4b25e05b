"""Which benchmarks there are: the files beside this folder that have a `BENCHMARK`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from benchmarks.harness.case import Benchmark

FOLDER = Path(__file__).resolve().parent.parent


def names() -> list[str]:
    """The names of all, in the order of the page."""
    return [name for name in ORDER if (FOLDER / f"{name}.py").exists()]


def find(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises
    ------
    LookupError
        If there is none; says which there are.
    """
    if name not in names():
        raise LookupError(f"no benchmark {name!r}; there are {', '.join(names())}")
    benchmark: Benchmark = import_module(f"benchmarks.{name}").BENCHMARK
    return benchmark


ORDER = (
    # What the machine itself allows.
    "two_cores",
    # Coordination.
    "barrier", "record", "queue", "pingpong", "chain", "nested_scopes", "many_dataflows",
    "loop_round", "keyed_count", "observed", "watched",
    "snapshots",
    # Throughput.
    "exchange", "epochs", "words", "integers", "hash_join", "iterative_distinct",
    "spark_bridge",
    # Graphs.
    "pagerank", "bfs", "union_find", "triangles", "directed_triangles", "real_graphs",
    "algorithms", "skew",
    # Collections.
    "arranged", "kept_tables", "kept_large", "kept_graphs", "kept_motifs", "tpch",
    # How cost grows, and what starting costs.
    "idle_operators", "many_ports", "outstanding_times", "flow_control", "spill",
    "fairness", "simulated_workers", "startup",
    # Services, beside Spark's own streams.
    "service_latency", "service_throughput", "service_loop",
    "service_recovery", "spark_recovery", "service_soak",
    # Minutes for each case: only when it is named.
    "accumulated_progress", "event_driven", "kept_on_spark", "spark_triangles",
    "spark_real_graphs", "spark_tables", "large_graphs",
)  # fmt: skip
