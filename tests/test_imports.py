"""What is imported, and when: nothing heavy before it is used.

Modules are counted, and not milliseconds, which a busy machine would stretch.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

from pointstamp.compiled import SHARED

pytestmark = pytest.mark.new_interpreters

HEAVY = {
    *("numba", "llvmlite", "pyarrow", "pyspark", "pandas", "scipy", "typer", "rich", "greenlet"),
    *("confluent_kafka", "adbc_driver_manager"),
}

EXECUTE = """
import json
import sys
import pointstamp as ps

def hello(worker):
    seen = []
    with worker.dataflow() as scope, scope.iterative() as inner:
        records = scope.to_stream([1, 2, 3] if worker.index == 0 else [])
        loop, again = inner.feedback(1)
        done, rest = records.exchange(lambda x: x).enter(inner).concat(again).branch(bool)
        loop.connect(done.map(lambda x: x - 1))
        rest.leave().inspect(seen.append)
    worker.run()
    return len(seen), sorted(sys.modules)

print(json.dumps(ps.execute(hello, workers=WORKERS)))
"""


def run_python(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def modules_after(code: str) -> set[str]:
    return set(run_python(f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"))


def test_importing_the_package_imports_nothing_heavy() -> None:
    imported = modules_after("import pointstamp") - modules_after("")
    assert imported & (HEAVY | {"numpy", "cloudpickle"}) == set()
    assert len(imported) < 50


def test_importing_the_graph_algorithms_imports_none_of_them() -> None:
    imported = modules_after("import pointstamp.graph") - modules_after("import pointstamp")
    assert imported == {"pointstamp.graph"}


@pytest.mark.parametrize("name", ["pointstamp", "pointstamp.graph", "pointstamp.checkpoint"])
def test_no_module_hides_what_is_imported_when_it_is_first_used(name: str) -> None:
    """As an attribute of its package a module is in place of what has its name there."""
    package = importlib.import_module(name)
    modules = {found.name for found in pkgutil.iter_modules(package.__path__)}
    assert modules & set(package._HOMES) == set()


def test_workers_import_nothing_heavy_until_a_kernel_runs() -> None:
    """The only library that they all need is NumPy."""
    for workers in (1, 2):
        parts = run_python(EXECUTE.replace("WORKERS", str(workers)))
        assert sum(n_seen for n_seen, _ in parts) == 3
        for _, modules in parts:
            assert "numpy" in modules  # else this looks at the wrong process
            assert HEAVY & {*modules} == set()


def test_a_process_that_starts_workers_imports_nothing_that_they_need() -> None:
    """It has them start the sooner: NumPy alone is a quarter of what a worker imports."""
    start = "import pointstamp as ps\nassert ps.execute(abs_of, workers=2) == [0, 1]"
    imported = modules_after(f"def abs_of(worker): return abs(worker.index)\n{start}")
    assert "pointstamp.communication.processes" in imported
    assert imported & (HEAVY | {"numpy"}) == set()
    imported -= {"pointstamp.kernels", SHARED}  # what each compiled module needs, and no kernel
    assert {name.split(".")[1] for name in imported if name.startswith("pointstamp.")} == {
        "communication",
        "compiled",
        "dataflow",
        "errors",
        "runtime",
    }


def test_what_commits_a_batch_of_spark_imports_no_dataflow() -> None:
    """Spark has processes for it of its own, which the first batch waits for."""
    imported = modules_after("import pointstamp.spark.source")
    ours = {name for name in imported if name.startswith("pointstamp.")}
    assert "pointstamp.service.flight_client" in ours
    assert {
        name
        for name in ours
        if name.split(".")[1] in ("containers", "dataflow", "kernels", "runtime", "state")
    } == set()
    # Nor has one for each stream of a collection to wait for pandas, half a second.
    assert "pandas" not in modules_after("import pointstamp.spark.collection_source")
