"""Every kernel has two forms, and all programs have the same answers by both."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pointstamp.kernels
from pointstamp.compiled import LOOPS, build_info, source
from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import flag

KERNELS = Path(pointstamp.kernels.__file__).parent

ALGORITHMS = """
import json, sys
import numpy as np
import pointstamp as ps
from pointstamp import graph
from pointstamp.containers.arrays import Arrays

rng = np.random.default_rng(0)
pairs, weights = rng.integers(0, 40, (200, 2)), rng.random(200)
far = np.unique(rng.integers(-(2**62), 2**62, 40))
far = np.concatenate([far, np.arange(40 - len(far))])

def answers(build, vertices, workers):
    def main(worker):
        mine = slice(worker.index, None, worker.peers)
        table = vertices[pairs[mine]]
        batch = Arrays(src=table[:, 0], dst=table[:, 1], weight=weights[mine])
        found = []
        with worker.dataflow() as scope:
            output = build(scope.batches_to_stream([batch]))
            output.inspect_batch(lambda time, batch: found.extend(map(repr, batch.to_pylist())))
        worker.run()
        return found
    found = ps.execute(main, workers=workers, threads=True)
    return sorted(sum(found, [])) if workers > 1 else sorted(found)

said = []
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
        said += [answers(build, vertices, 1), answers(build, vertices, 2)]
print(json.dumps([ps.build_info(), said, sorted({"numba", "Cython"} & set(sys.modules))]))
"""


def run(code: str, **environment: str) -> list:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return json.loads(ran.stdout)


def loops_in_sources() -> set[tuple[str, str]]:
    """The functions that Python can call, by the module that they are in; but those of tests."""
    found = set()
    for module in LOOPS:
        text = source(module).read_text()
        found |= {
            (module.rpartition(".")[2], name) for name in re.findall(r"(?m)^def ([a-z]\w+)", text)
        }
    return found


def twins_in_sources() -> set[tuple[str, str]]:
    """The functions that `kernel` decorates."""
    pattern = r'(?m)^@kernel\("(\w+)"\)\ndef (\w+)'
    files = KERNELS.glob("*.py")
    return {found for file in files for found in re.findall(pattern, file.read_text())}


def test_every_loop_has_a_twin_of_its_name_and_every_twin_a_loop():
    assert loops_in_sources() == twins_in_sources()
    assert len(twins_in_sources()) > 20


def test_what_runs_is_what_the_build_says():
    n_kernels = 0
    for info in pkgutil.iter_modules([str(KERNELS)]):
        if info.name.endswith("_loops"):
            continue
        module = importlib.import_module(f"pointstamp.kernels.{info.name}")
        for value in vars(module).values():
            if hasattr(value, "plain"):
                n_kernels += 1
                assert (value is value.plain) == (build_info() != "compiled")
    assert n_kernels >= len(twins_in_sources())


def test_a_twin_without_a_loop_is_refused():
    if build_info() != "compiled":
        pytest.skip("nothing is compiled here")

    def no_such_loop() -> None: ...

    with pytest.raises(AttributeError, match="no_such_loop"):
        kernel("graph_loops")(no_such_loop)


def test_loops_and_twins_give_every_algorithm_the_same_answers():
    compiled = run(ALGORITHMS, POINTSTAMP_COMPILED="1")
    plain = run(ALGORITHMS, POINTSTAMP_COMPILED="0")
    assert plain[0].startswith("interpreted")
    assert compiled[0] == "compiled" or build_info() != "compiled"
    assert all(plain[1])
    assert compiled[1] == plain[1]
    assert compiled[2] == plain[2] == [], "no compiler is imported"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("narrow", "np.arange(3, dtype=np.int32), 0, np.zeros(3, np.bool_)"),
        ("scattered", "np.arange(9)[::3], 0, np.zeros(9, np.bool_)"),
    ],
)
def test_loops_take_only_arrays_of_their_own_type_that_lie_together(name, arguments):
    if build_info() != "compiled":
        pytest.skip("nothing is compiled here")
    with pytest.raises(ValueError, match=r"Buffer dtype mismatch|not C.contiguous"):
        flag(*eval(arguments, {"np": np}))


@pytest.mark.skipif(os.environ.get("POINTSTAMP_BOUNDS") != "1", reason="for `make bounds` alone")
def test_an_index_out_of_range_is_found_by_the_build_that_looks():
    with pytest.raises(IndexError, match="Out of bounds"):
        flag(np.array([7]), 0, np.zeros(3, np.bool_))
