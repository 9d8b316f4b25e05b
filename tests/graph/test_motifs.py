"""Motifs against trying every assignment, for any number of workers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import ColumnError, OperatorError, PatternError, SchemaError, WorkerError
from pointstamp.graph import count_motifs, motifs, parse_pattern
from tests.conftest import examples
from tests.graph.conftest import brute_force, merged, run

PATTERNS = {
    "edge": "(a)-[]->(b)",
    "both ways": "(a)-[]->(b); (b)-[]->(a)",
    "path": "(a)-[]->(b); (b)-[]->(c); (c)-[]->(d)",
    "path into": "(a)-[]->(b); (c)-[]->(b); (c)-[]->(d)",
    "star": "(a)-[]->(b); (a)-[]->(c); (a)-[]->(d)",
    "star into": "(b)-[]->(a); (c)-[]->(a)",
    "triangle": "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)",
    "3-cycle": "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)",
    "diamond": "(a)-[]->(b); (a)-[]->(c); (b)-[]->(d); (c)-[]->(d)",
    "chordal": "(a)-[]->(b); (a)-[]->(c); (b)-[]->(d); (c)-[]->(d); (b)-[]->(c)",
    "4-clique": "(a)-[]->(b); (a)-[]->(c); (a)-[]->(d); (b)-[]->(c); (b)-[]->(d); (c)-[]->(d)",
    "4-cycle": "(a)-[]->(b); (b)-[]->(c); (c)-[]->(d); (d)-[]->(a)",
    "bow tie": "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a); (c)-[]->(d); (d)-[]->(e); (e)-[]->(c)",
    "house": "(a)-[]->(b); (b)-[]->(c); (c)-[]->(d); (a)-[]->(d); (e)-[]->(a); (e)-[]->(b)",
    "with a loop": "(a)-[]->(b); (b)-[]->(b); (b)-[]->(c)",
    "from a loop": "(a)-[]->(a); (a)-[]->(b)",
    "open triangle": "(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)",
    "not back": "(a)-[]->(b); !(b)-[]->(a)",
    "no loop": "(a)-[]->(b); (b)-[]->(c); !(b)-[]->(b); !(c)-[]->(a)",
}

graphs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=24)


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=examples(20))
@given(edges=graphs, distinct=st.booleans(), workers=st.integers(1, 3))
def test_every_match_is_found_once_and_counted(name, distinct, workers, edges):
    text = PATTERNS[name]
    pattern = parse_pattern(text)
    expected = brute_force(edges, pattern.edges, pattern.absent, distinct)
    assert run(lambda s: motifs(s, text, distinct), edges, workers) == sorted(expected)
    counted = run(lambda s: count_motifs(s, text, distinct), edges, workers)
    assert counted == [(len(expected),)]


vertices = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=examples(25))
@given(edges=st.lists(st.tuples(vertices, vertices), max_size=8), workers=st.integers(1, 3))
def test_vertices_may_be_any_int64(workers, edges):
    hub = 2**62
    edges = [*edges, *((hub, t) for _, t in edges), *((s, hub) for s, _ in edges)]
    found = run(lambda s: motifs(s, PATTERNS["triangle"]), edges, workers)
    assert found == sorted(brute_force(edges, [(0, 1), (1, 2), (0, 2)]))


@st.composite
def patterns(draw):
    """A connected pattern of up to 5 vertices with any edges, some of them denied."""
    n = draw(st.integers(2, 5))
    pairs = {(draw(st.integers(0, v - 1)), v) for v in range(1, n)}
    pairs = {p if draw(st.booleans()) else p[::-1] for p in pairs}
    ends = st.integers(0, n - 1)
    more = draw(st.sets(st.tuples(ends, ends), max_size=4)) - pairs
    absent = {p for p in more if draw(st.booleans())}
    return sorted(pairs | more - absent), sorted(absent)


def written(present, absent):
    """The text of a pattern; vertex i is named by its i-th letter."""
    terms = [f"({'abcde'[s]})-[]->({'abcde'[t]})" for s, t in present]
    return "; ".join(terms + [f"!({'abcde'[s]})-[]->({'abcde'[t]})" for s, t in absent])


@settings(max_examples=examples(120))
@given(
    pattern=patterns(),
    edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=18),
    workers=st.integers(1, 3),
    distinct=st.booleans(),
)
def test_any_pattern_on_any_graph(pattern, edges, workers, distinct):
    present, absent = pattern
    text = written(present, absent)
    names = parse_pattern(text).columns
    expected = sorted(
        tuple(match["abcde".index(name)] for name in names)
        for match in brute_force(edges, present, absent, distinct)
    )
    assert run(lambda s: motifs(s, text, distinct), edges, workers) == expected


def test_vertices_without_a_name_are_matched_and_not_shown(workers):
    edges = [(1, 2), (1, 3), (2, 3), (4, 1)]
    found = run(lambda s: motifs(s, "(a)-[]->(); (a)-[]->()"), edges, workers)
    assert found == [(1,)] * 4 + [(2,), (4,)]
    assert run(lambda s: count_motifs(s, "()-[]->(a); (a)-[]->()", True), edges, workers) == [(3,)]


def test_a_pattern_without_names_can_be_counted_but_not_shown():
    with pytest.raises(WorkerError, match="names no vertex") as caught:
        run(lambda s: motifs(s, "()-[]->()"), [(1, 2)])
    assert isinstance(caught.value.__cause__, PatternError)
    assert run(lambda s: count_motifs(s, "()-[]->()"), [(1, 2), (1, 2), (2, 2)]) == [(2,)]


def test_no_edges_give_no_matches_and_a_count_of_zero(workers):
    assert run(lambda s: motifs(s, PATTERNS["triangle"]), [], workers) == []
    assert run(lambda s: count_motifs(s, PATTERNS["triangle"]), [], workers) == [(0,)]


def test_a_graph_without_matches_is_counted_as_zero(workers):
    assert run(lambda s: count_motifs(s, PATTERNS["triangle"]), [(1, 2)], workers) == [(0,)]


def test_columns_are_named_by_the_pattern_and_are_int64():
    def main(worker):
        found = []
        with worker.dataflow() as scope:
            matches = motifs(scope.to_stream([(1, 2), (2, 7)]), "(x)-[e]->(mid); (mid)-[]->(end)")
            matches.inspect_batch(lambda time, batch: found.append(batch))
        worker.run()
        return found

    (batch,) = ps.execute(main)[0]
    assert batch.schema == pa.schema([(n, pa.int64()) for n in ("x", "mid", "end")])
    assert batch.to_pydict() == {"x": [1], "mid": [2], "end": [7]}


def test_each_time_is_a_graph_of_its_own(workers):
    """Two edges of a triangle at one time and the third at another are no triangle."""

    def main(worker):
        found, counts = [], []
        with worker.dataflow() as scope:
            input, edges = scope.new_input()
            text = PATTERNS["3-cycle"]
            probe = (
                motifs(edges, text)
                .inspect_batch(
                    lambda time, batch: found.extend(
                        (time, *row) for row in zip(*batch.to_pydict().values(), strict=True)
                    )
                )
                .probe()
            )
            count_motifs(edges, text).inspect_batch(
                lambda time, batch: counts.append((time, batch.to_pydict()["count"]))
            )
        send = input.send if worker.index == 0 else (lambda edge: None)
        for edge in [(1, 2), (2, 3)]:
            send(edge)
        input.advance_to(1)
        for edge in [(3, 1), (1, 2), (2, 3)]:
            send(edge)
        input.advance_to(2)
        worker.step_while(lambda: probe.less_than(2))
        early = sorted(found)
        input.advance_to(5)
        send((3, 1))
        input.close()
        worker.run()
        return early, found, counts

    results = ps.execute(main, workers=workers, threads=True)
    cycles = [(1, 1, 2, 3), (1, 2, 3, 1), (1, 3, 1, 2)]
    assert sorted(merged(early for early, _, _ in results)) == cycles, "known when complete"
    assert sorted(merged(found for _, found, _ in results)) == cycles
    assert sorted(merged(counts for _, _, counts in results)) == [(0, [0]), (1, [3]), (5, [0])]


def failing(batch):
    """The cause with which a motif of one batch of edges fails."""

    def main(worker):
        with worker.dataflow() as scope:
            motifs(scope.batches_to_stream([batch]), "(a)-[]->(b)")

    with pytest.raises((WorkerError, OperatorError)) as caught:
        ps.execute(main)
    cause = caught.value
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return cause


def test_columns_of_edges_may_have_other_names_and_widths():
    batch = pa.RecordBatch.from_pydict(
        {"from": pa.array([1, 2], pa.int16()), "to": pa.array([2, 3], pa.uint64()), "w": ["x", "y"]}
    )

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            motifs(scope.batches_to_stream([batch]), "(a)-[]->(b)").inspect_batch(
                lambda time, batch: found.append(batch.to_pydict())
            )
        worker.run()
        return found

    assert ps.execute(main) == [[{"a": [1, 2], "b": [2, 3]}]]


def test_columns_that_hold_no_vertices_are_refused():
    text = failing(pa.RecordBatch.from_pydict({"src": ["x"], "dst": ["y"]}))
    assert isinstance(text, SchemaError)
    assert "'src', not string" in str(text)
    null = failing(pa.RecordBatch.from_pydict({"src": [1, 2], "dst": [None, 2]}))
    assert isinstance(null, SchemaError)
    assert "1 of 2 are null" in str(null)
    one = failing(pa.RecordBatch.from_pydict({"src": [1]}))
    assert isinstance(one, ColumnError)
    huge = failing(pa.RecordBatch.from_pydict({"src": pa.array([2**63], pa.uint64()), "dst": [1]}))
    assert isinstance(huge, SchemaError)
    assert "9223372036854775808" in str(huge)


def test_rows_that_are_no_pairs_of_integers_are_refused():
    for row in [(1, 2, 3), ("a", "b"), 7, (1, 2**63), (True, 1)]:
        error = failing([(1, 2), row])
        assert isinstance(error, SchemaError)
        assert repr(row) in str(error)
