"""NumPy becomes Arrow and Arrow NumPy: as pyarrow would, without a copy, and without pandas."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from pointstamp.containers import Arrays
from pointstamp.containers.convert import arrow_array, integer_values, numbers, to_arrow

NATIVE = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
OTHERS = ["?", "M8[us]", "m8[s]", "M8[D]", "U3", "S2"]

GRAPH_RESULT = """
import json
import sys
import numpy as np
import pointstamp as ps
from pointstamp import graph
from pointstamp.containers import Arrays

def main(worker):
    found = []
    mine = np.arange(worker.index, 50, worker.peers)
    with worker.dataflow() as scope:
        edges = scope.batches_to_stream([Arrays(src=mine, dst=(mine + 1) % 50)])
        ranks = graph.pagerank(edges, rounds=3).exchange("vertex")
        matches = graph.motifs(edges, "(a)-[]->(b)").exchange(["a"])
        for stream in (ranks, matches):
            stream.inspect_batch(lambda time, batch: found.append(batch.num_rows))
    worker.run()
    return sum(found), "pyarrow" in sys.modules, "pandas" in sys.modules

print(json.dumps(ps.execute(main, workers=2, threads=True)))
"""


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray:
    """Columns of many dtypes; also empty, with gaps, backwards, and not aligned."""
    dtype = np.dtype(draw(st.sampled_from(NATIVE + OTHERS)))
    # Half of a surrogate pair is no text, and Arrow refuses it.
    items = of_numpy.from_dtype(dtype, alphabet=st.characters(codec="utf-8"))
    column = draw(of_numpy.arrays(dtype, st.integers(0, 20), elements=items))
    form = draw(st.sampled_from(["whole", "part", "gaps", "backwards", "read-only", "unaligned"]))
    if form == "part":
        return column[1:]
    if form == "gaps":
        return column[::3]
    if form == "backwards":
        return column[::-1]
    if form == "unaligned":
        return np.frombuffer(b"?" + column.tobytes(), dtype, offset=1)
    column.flags.writeable = form != "read-only"
    return column


@given(columns())
def test_an_arrow_array_is_what_pyarrow_makes(column):
    made, expected = arrow_array(column), pa.array(column)
    made.validate(full=True)
    if column.dtype.kind == "f":  # no nan is equal to itself
        assert made.type == expected.type
        assert numbers(made).tobytes() == np.asarray(expected).tobytes()
    else:
        assert made.equals(expected)


@pytest.mark.parametrize("code", NATIVE)
def test_numbers_come_back_from_arrow_and_nothing_was_copied(code):
    column = np.arange(9).astype(code)
    made = arrow_array(column)
    back = numbers(made.slice(2, 5))
    assert back.dtype == column.dtype
    assert back.tolist() == [2, 3, 4, 5, 6]
    assert np.shares_memory(back, column)
    assert not back.flags.writeable
    assert numbers(made.slice(9)).tolist() == []


def test_numbers_of_an_array_without_buffers_are_none():
    assert numbers(pa.nulls(0, pa.int64())).tolist() == []


def test_the_other_byte_order_is_never_read_as_this_one():
    """Pyarrow says that it does not have it; read as it is, 1 would be 2^56."""
    with pytest.raises(pa.ArrowNotImplementedError):
        arrow_array(np.array([1, 2], ">i8"))


def test_a_batch_outlives_the_columns_that_it_was_made_of():
    batch = to_arrow(Arrays(a=np.arange(1000), b=np.arange(1000) % 2 == 0, c=np.ones(1000)))
    assert batch.schema.types == [pa.int64(), pa.bool_(), pa.float64()]
    assert sum(batch.column("a").to_pylist()) == 499_500
    assert integer_values(batch.column("a"), "a", "a test").sum() == 499_500


@pytest.mark.new_interpreters
def test_a_graph_result_does_not_import_pandas():
    done = subprocess.run(
        [sys.executable, "-c", GRAPH_RESULT], capture_output=True, text=True, check=True
    )
    parts = json.loads(done.stdout)
    assert sum(n for n, _, _ in parts) == 100
    assert {(arrow, pandas) for _, arrow, pandas in parts} == {(True, False)}
