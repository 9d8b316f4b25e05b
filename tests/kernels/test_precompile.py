"""What is compiled ahead is all that is called, and is compiled once."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import pytest

import pointstamp.kernels
from pointstamp.kernels import jit
from pointstamp.kernels.jit import Kernel
from pointstamp.kernels.precompile import FORMS

IN_TABLES = {"first_slot"}  # has a twin because its sums overflow, but only kernels call it

RUN_ALL = """
import json
import numpy as np
import pointstamp as ps
from pointstamp import graph
from pointstamp.containers import Arrays
from pointstamp.kernels import hash_join, hashing
from pointstamp.kernels.precompile import FORMS, compile_all, kernel_of

n_compiled = compile_all()
known = {(f, n): kernel_of(f, n).forms for f, names in FORMS.items() for n in names}
rng = np.random.default_rng(0)
pairs, weights = rng.integers(0, 40, (200, 2)), rng.random(200)
far = rng.integers(-(2**62), 2**62, 40)

def run(build, vertices):
    def main(worker):
        mine = slice(worker.index, None, worker.peers)
        table = vertices[pairs[mine]]
        batch = Arrays(src=table[:, 0], dst=table[:, 1], weight=weights[mine])
        with worker.dataflow() as scope:
            build(scope.batches_to_stream([batch]))
        worker.run()
    ps.execute(main, workers=2, threads=True)
    ps.execute(main)

for vertices in (np.arange(40), far):
    start = int(vertices[pairs[0, 0]])
    for build in [
        graph.pagerank, graph.connected_components, graph.components_by_labels,
        graph.strongly_connected_components, graph.communities, graph.local_clustering,
        graph.core_numbers, graph.triangles, graph.count_triangles,
        lambda edges: graph.bfs(edges, start), lambda edges: graph.sssp(edges, start),
        lambda edges: graph.k_core(edges, 3),
        lambda edges: graph.motifs(edges, "(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)", distinct=True),
    ]:
        run(build, vertices)

many = np.arange(3000)
kept = hash_join.add_values(hash_join.no_values(), many, many)
hash_join.find_values(kept, many)
offsets = np.arange(11, dtype=np.int32)
hashing.hash_bytes(offsets, np.arange(10, dtype=np.uint8))
hashing.combine_columns([hashing.hash_ints(many), hashing.hash_floats(many.astype(float))])
new = {f"{f}.{n}": sorted(kernel_of(f, n).forms - forms) for (f, n), forms in known.items()}
print(json.dumps([n_compiled, {name: forms for name, forms in new.items() if forms}]))
"""


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)


def test_every_kernel_with_a_twin_is_compiled_ahead():
    found = set()
    for info in pkgutil.iter_modules(pointstamp.kernels.__path__):
        module = importlib.import_module(f"pointstamp.kernels.{info.name}")
        for name, value in vars(module).items():
            is_own = isinstance(value, Kernel) and value.function.__module__ == module.__name__
            if is_own and value.plain is not value.function:
                found.add((info.name, name))
    named = {(file, name) for file, names in FORMS.items() for name in names}
    assert {(file, name) for file, name in found if name not in IN_TABLES} == named


@pytest.mark.skipif(not jit.numba_wanted(), reason="kernels run plain here")
def test_after_warming_nothing_is_compiled_not_even_in_the_next_process():
    """Every algorithm, on one worker and on two, with ids close together and far apart."""
    _, new = run_python(RUN_ALL)
    assert new == {}
    code = "from pointstamp.kernels.precompile import compile_all; print(compile_all())"
    assert run_python(code) == 0


def test_warming_does_nothing_where_kernels_run_plain():
    code = "from pointstamp.kernels.precompile import compile_all; print(compile_all())"
    assert run_python(code, POINTSTAMP_NUMBA="0") == 0
