"""What users are told: the operator whose code it was, and what to do about it."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import (
    BuildError,
    ColumnError,
    ContainerError,
    DataError,
    FeedbackError,
    KeyHashError,
    RouteError,
    SchemaError,
    UsageError,
)
from tests.dataflow.carried import arrays, cause_of, columns, rows

RECORDS = [(1, 2), (3, 4)]


def refuses(*args: Any) -> Any:
    raise ValueError("no")


class Unprintable:
    """A record whose text fails, with a method that a dataflow calls."""

    def __repr__(self) -> str:
        raise RuntimeError

    def refuse(self, *records: Any, **options: Any) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("records", "function", "called"),
    [
        ([3, 0], lambda x: 1 // x, "in <lambda> at FILE, called with x=0"),
        (["a" * 500], lambda x: 1 // x, rf"with x='{'a' * 37}\.\.\.{'a' * 38}'"),
        ([7], Unprintable().refuse, r"in refuse at FILE, called with records=\(7,\), options={}"),
        ([Unprintable()], refuses, r"args=\(<Unprintable instance at 0x[0-9a-f]*>,\)"),
        ([7], singledispatch(refuses), r"in refuses at FILE, called with args=\(7,\)"),
        ([np.zeros((2, 3))], lambda x: x.no, r"called with x=<ndarray of shape \(2, 3\)>"),
        (["x"], int, r"ValueError\(\"invalid literal for int\(\) with base 10: 'x'\"\)"),
    ],
)
def test_an_error_says_with_what_the_program_s_function_was_called(
    records: Any, function: Any, called: str
) -> None:
    error, _ = cause_of(lambda scope: scope.to_stream(records).map(function), 1)
    file = rf"{re.escape(__file__)}:\d+"
    assert re.search(f"{called.replace('FILE', file)}$", str(error)), str(error)


def test_handles_are_none_of_what_a_function_is_called_with() -> None:
    def logic(input: Any, output: Any) -> None:
        for _ in input:
            raise ValueError("no")

    def build(scope: Any) -> Any:
        return scope.to_stream([1]).unary(ps.Pipeline(), "Own", lambda capability, info: logic)

    error, _ = cause_of(build, 1)
    assert re.search(r"ValueError\('no'\), in logic at [^,]*:\d+$", str(error)), str(error)


@pytest.mark.parametrize(
    ("act", "operator"),
    [
        (lambda s: s.exchange(refuses), "Exchange"),
        (lambda s: s.aggregate(lambda k, r, n: n, key=refuses), "Aggregate"),
        (lambda s: s.state_machine(refuses, key=refuses), "StateMachine"),
        (lambda s: s.join(s, refuses), "Join"),
        (lambda s: s.window(ps.Tumbling(2), key=refuses)[0], "Window"),
        (lambda s: s.distribute(refuses), "Distribute"),
        (lambda s: s.distribute(lambda time, batch: 9), "Distribute"),
        (lambda s: s.exchange("nowhere"), "Exchange"),
    ],
)
def test_a_key_or_a_route_that_fails_is_of_the_operator_that_has_it(
    act: Any, operator: str
) -> None:
    """It runs where the batch is sent, in the operator before."""
    error, _ = cause_of(lambda scope: act(rows(scope, "kx", RECORDS).delay_batch(lambda t: 5)), 2)
    assert (error.operator, error.time) == (operator, 5)
    assert f"operator {operator!r} failed at time 5" in str(error)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("act", "operator"),
    [
        (lambda s: s.exchange("absent"), "Exchange"),
        (lambda s: s.join(s, "absent"), "Join"),
    ],
)
def test_a_column_that_is_not_there_is_of_the_operator_that_names_it(
    act: Any, operator: str, workers: int
) -> None:
    batch = pa.table({"k": [1, 2]})
    with pytest.raises(
        ps.errors.WorkerError, match=f"operator '{operator}' failed at time 0: .*'absent'"
    ):
        ps.testing.collect(lambda scope: act(scope.to_stream(batch)), workers=workers)


def test_the_code_that_sends_to_a_key_that_fails_is_told_whose_it_is() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.exchange(refuses)
        input.send(1)
        with pytest.raises(ps.errors.OperatorError, match="'Exchange' failed at time 0"):
            input.advance_to(1)
        raise KeyError("seen")

    with pytest.raises(ps.errors.WorkerError, match="seen"):
        ps.execute(main, workers=2, threads=True)


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (
            lambda s: s.to_stream([1]).aggregate(lambda k, x, n: n),
            DataError,
            ["pairs (key, value)", "given 1", "key=lambda"],
        ),
        (
            lambda s: s.to_stream([(np.array([1, 2]), 1)]).aggregate(lambda k, x, n: n),
            KeyHashError,
            ["a key of type ndarray", "array([1, 2])", "tuple(key)"],
        ),
        (
            lambda s: rows(s, "kx", RECORDS).state_machine(lambda k, x, n: 5),
            DataError,
            ["gave 5 for the key", "(state, records to send)"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).state_machine(lambda k, x, n: None, key="k"),
            DataError,
            ["gave None for the key"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).aggregate(lambda k, x, n: n),
            ContainerError,
            ["record batches", "key='user'"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).map(str),
            ContainerError,
            ["this stream carries record batches; use map_batches"],
        ),
        (
            lambda s: s.batches_to_stream([Arrays(t=[1])]).map(str),
            ContainerError,
            ["this stream carries columns of NumPy arrays; use map_batches"],
        ),
        (
            lambda s: s.batches_to_stream([Arrays(t=[1])]).filter(pc.field("t") > 0),
            ContainerError,
            ["this stream carries columns of NumPy arrays: name a column instead"],
        ),
        (
            lambda s: s.batches_to_stream([Arrays(t=[1])]).exchange("absent"),
            ColumnError,
            ["a batch of NumPy arrays cannot be keyed by 'absent'"],
        ),
        (
            lambda s: rows(s, "kx", RECORDS).window(ps.Tumbling(2), time="x")[0],
            ColumnError,
            ["Window is given the column 'x'", "give a function of a record (lambda r: r[0])"],
        ),
        (
            lambda s: s.to_stream([{"t": 1}]).filter("t"),
            ColumnError,
            ["given the column 't'", "(lambda r: r['t'])"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).filter("x > 1"),
            ColumnError,
            ["cannot give 'x > 1'", "an expression, such as pc.field('x') > 2"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).map_batches(lambda b: {"k": b["k"]}),
            ContainerError,
            ["known here (list", "for columns by name give pyarrow.record_batch(it)"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).map_batches(lambda b: b["k"]),
            ContainerError,
            ["name the column: pyarrow.record_batch({'values': array})"],
        ),
        (
            lambda s: _of({"t": ["noon"]}, s).window(ps.Tumbling(2), time="t")[0],
            DataError,
            ["not string; cast it to a timestamp before"],
        ),
        (
            lambda s: _of({"k": [[1]], "x": [1]}, s).aggregate([("x", "sum")], key="k"),
            SchemaError,
            ["Aggregate cannot group", "list<item: int64>"],
        ),
        (
            lambda s: _of({"k": [{"a": 1}], "x": [1]}, s).window(ps.Sessions(2), time="x", key="k")[
                0
            ],
            SchemaError,
            ["Window cannot group by the column 'k'", "struct<a: int64>"],
        ),
        (
            lambda s: s.batches_to_stream([Arrays(t=np.array(["NaT"], "M8[s]"))]).window(
                ps.Tumbling(2), time="t"
            )[0],
            DataError,
            ["event time for every record", "1 of 1 are not a time"],
        ),
        (
            lambda s: s.batches_to_stream([Arrays(t=np.array([2**63], np.uint64))]).window(
                ps.Tumbling(2), time="t"
            )[0],
            DataError,
            ["below 2^63", str(2**63)],
        ),
        (
            lambda s: s.to_stream([datetime.datetime(2020, 1, 1)]).window(
                ps.Tumbling(2), time=lambda t: t
            )[0],
            DataError,
            ["integers as event times"],
        ),
        (
            lambda s: columns(s, "kx", RECORDS).aggregate([("x", "sum")], key=pc.field("k") + 1),
            BuildError,
            ["'Aggregate' cannot be keyed by the expression", "map_batches"],
        ),
        (
            lambda s: rows(s, "kx", RECORDS).join(s.empty(), key=5),
            BuildError,
            ["'Join' cannot be keyed by 5"],
        ),
        (lambda s: s.to_stream([1]).window(10)[0], BuildError, ["ps.Tumbling(10)", "found 10"]),
        (lambda s: s.iterator_source(lambda time: 3, ps.Probe()), UsageError, ["it gave 3"]),
        (lambda s: s.to_stream([1]).partition("2", int)[0], BuildError, ["'2' were asked for"]),
        (lambda s: s.to_stream([{"a": 1}]).top_k(1, by="a"), ColumnError, ["lambda r: r['a']"]),
        (lambda s: s.to_stream([{"a": 1}]).top_k(1, key="a"), ColumnError, ["lambda r: r['a']"]),
        (
            lambda s: s.flow_controlled([(0, [1]), 5], ps.Probe()),
            DataError,
            ["'FlowControlled' is given pairs (time, batch)", "found 5"],
        ),
    ],
)
def test_what_does_not_fit_is_said_with_what_would(build: Any, kind: Any, words: list[str]) -> None:
    error, cause = cause_of(build)
    inner = cause if isinstance(cause, kind) else cause.__cause__
    assert isinstance(inner, kind)
    assert [word for word in words if word not in str(error)] == []


def _of(data: dict[str, Any], scope: Any) -> Any:
    return scope.batches_to_stream([pa.RecordBatch.from_pydict(data)])


@pytest.mark.parametrize(
    ("act", "operator"),
    [
        (lambda s: s.aggregate(lambda k, x, n: n, emit=refuses), "Aggregate"),
        (lambda s: s.state_machine(refuses), "StateMachine"),
        (lambda s: s.unary_notify(ps.Pipeline(), "Own", _refuses_when_complete), "Own"),
    ],
)
def test_code_that_fails_for_a_complete_time_fails_at_that(act: Any, operator: str) -> None:
    """Also where a batch of a later time was taken before, in the same activation."""

    def build(scope: Any) -> Any:
        now, later = (
            rows(scope, "kx", RECORDS).delay_batch(lambda time, at=at: at) for at in (3, 5)
        )
        return act(now.concat(later))

    error, _ = cause_of(build)
    assert (error.operator, error.time) == (operator, 3)


def _refuses_when_complete(capability: Any, info: Any) -> Any:
    def logic(input: Any, output: Any, notificator: Any) -> None:
        for time, _ in input:
            notificator.notify_at(time.retain())
        for _ in notificator:
            refuses()

    return logic


def test_what_reports_a_round_fails_at_that_round() -> None:
    error, _ = cause_of(lambda s: s.to_stream([1]).iterate(lambda again: again, report=refuses))
    assert (error.operator, error.time) == ("Decide", (0, 0))


def gives_none(capability: Any, info: Any) -> None: ...


async def no_generator(input: Any) -> None: ...


def yields(*args: Any) -> Any:
    yield args


async def no_input() -> Any:
    yield 1


async def waits_and_yields() -> Any:
    yield 1


def built(stream: Any, logic: Any) -> Any:
    builder = stream.scope.operator("Own")
    builder.new_input(stream, ps.Pipeline())
    builder.build(lambda capabilities, info: logic)
    return stream


def left(stream: Any) -> Any:
    """A stream of a scope that is complete."""
    with stream.scope.region() as box:
        return stream.enter(box)


@pytest.mark.parametrize("method", ["source", "async_source"])
def test_a_source_that_yields_nothing_is_refused(method: str) -> None:
    error, cause = cause_of(lambda scope: getattr(scope, method)(no_generator))
    assert isinstance(cause, BuildError)
    assert "has no yield" in str(error)


def test_two_captures_do_not_write_one_file(tmp_path: Path) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([1])
        stream.capture(tmp_path)
        stream.capture(tmp_path)
        return stream

    error, _ = cause_of(build)
    assert "another capture writes this file" in str(error)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda s: s.map(3), "'Map' needs a function; found 3"),
        (lambda s: s.map(yields), "runs nothing; flat_map sends each of what it yields"),
        (lambda s: s.filter(yields), "runs nothing; return what it is to give"),
        (lambda s: s.inspect(yields), "'Inspect' is given <function yields"),
        (lambda s: s.filter(ps.col("a") > 1), "found (col('a') > 1), which is for collections; of"),
        (lambda s: s.unary(ps.Pipeline(), "U", lambda c, i: yields), "'U' is given <function yi"),
        (
            lambda s: s.unary_notify(ps.Pipeline(), "U", lambda c, i: no_generator),
            "'U' cannot wait for <function no_generator",
        ),
        (
            lambda s: s.unary(ps.Pipeline(), "U", lambda capability: None),
            "'U' calls its function with (capability, info), and <function",
        ),
        (
            lambda s: s.unary_notify(ps.Pipeline(), "U", lambda c, i: lambda i, o: None),
            "'U' calls its function with (input, output, notificator), and <function",
        ),
        (
            lambda s: s.binary(s, ps.Pipeline(), ps.Pipeline(), "U", lambda c, i: lambda i: None),
            "'U' calls its function with (input1, input2, output), and <function",
        ),
        (lambda s: s.delay(lambda r: 3), "'Delay' calls its function with (record, time), and <"),
        (lambda s: s.delay_batch(lambda r, t: 3), "calls its function with (time), and <function"),
        (lambda s: s.aggregate(lambda a, b: a, key=str), "(key, record, aggregate), and <functio"),
        (lambda s: s.state_machine(lambda v, n: (n, [])), "with (key, value, state), and <functi"),
        (lambda s: s.reduce(lambda a: a, key=str), "calls its function with (value, other), and"),
        (lambda s: s.accumulate(0, lambda b: b), "calls its function with (value, batch), and <"),
        (lambda s: s.inspect_time(lambda: 3), "(time, record), and <function"),
        (lambda s: s.inspect_batch(lambda b: b), "calls its function with (time, batch), and <f"),
        (lambda s: s.scope.async_source(no_input), "calls its function with (input), and <functio"),
        (lambda s: s.distribute(lambda b: 0), "calls its function with (time, batch), and <func"),
        (
            lambda s: s.fold_window(lambda v, r: v, ps.Tumbling(2), lambda r: 1)[0],
            "calls its function with (key, record, value), and <function",
        ),
        (
            lambda s: s.reduce_window(lambda v: v, ps.Tumbling(2), lambda r: 1)[0],
            "calls its function with (value, record), and <function",
        ),
        (lambda s: s.sink(ps.Pipeline(), "S", yields), "'S' is given <function yields"),
        (lambda s: built(s, None), "'Own' is given None as its logic: return a function"),
        (lambda s: built(s, yields), "as its logic, which has a yield or is an async def: a call"),
        (lambda s: s.sink(ps.Pipeline(), "S", 3), "'S' needs a function; found 3"),
        (lambda s: s.scope.to_stream({"a": [1]}), "is given a dict, of which the records would be"),
        (lambda s: s.scope.to_stream(waits_and_yields()), "async_source takes an asynchronous gen"),
        (lambda s: left(s).map(str), "call leave() of a stream in its `with` block"),
        (lambda s: s.flat_map(None), "'FlatMap' needs a function; found None"),
        (lambda s: s.map_batches("x"), "'MapBatches' needs a function; found 'x'"),
        (lambda s: s.inspect(3), "'Inspect' needs a function; found 3"),
        (lambda s: s.inspect_batch(3), "'InspectBatch' needs a function"),
        (lambda s: s.filter([1]), "'Filter' needs a function, the name of a column or an Arrow"),
        (lambda s: s.branch(None), "'Branch' needs a function, the name of a column"),
        (lambda s: s.partition(2, 1), "'Partition' needs a function, the name of a column"),
        (lambda s: s.ok_err(1), "'OkErr' needs a function, the name of a column"),
        (lambda s: s.delay(1), "'Delay' needs a function, the name of a column"),
        (lambda s: s.branch_when("x"), "'BranchWhen' needs a function; found 'x'"),
        (lambda s: s.distribute(1), "'Distribute' needs a function; found 1"),
        (lambda s: s.accumulate(0, 0), "'Accumulate' needs a function; found 0"),
        (lambda s: s.exchange(5), "'Exchange' cannot be keyed by 5"),
        (lambda s: s.concat([s]), "'Concatenate' of scope 'Dataflow' reads streams, each given"),
        (lambda s: s.join(None, lambda r: r), "'JoinRight' reads streams, and None"),
        (
            lambda s: s.join(pa.table({"a": [1]}), "a"),
            "and a Table is none: scope.to_stream(it) makes one",
        ),
        (
            lambda s: s.join(s.branch(bool), str),
            "and several streams (where_false, where_true) is none",
        ),
        (
            lambda s: s.scope.to_stream([pa.record_batch({"a": [1]})]),
            "a list of batches, of which each would be one record: batches_to_stream(it)",
        ),
        (
            lambda s: s.scope.source("file.csv"),
            "found 'file.csv'; files are read by ps.FileSource",
        ),
        (lambda s: s.sink("out"), "found 'out'; files are written by ps.FileSink(path)"),
        (lambda s: s.sink(print), "; inspect(function) calls a function of each record"),
        (
            lambda s: s.aggregate([("x", "avg")], key="k"),
            "by ('x', 'avg'); 'avg' is 'mean' here, and give (column, function)",
        ),
        (
            lambda s: s.aggregate(("x", "sum"), key="k"),
            "a list of aggregates of columns; for the one write [('x', 'sum')]",
        ),
        (lambda s: s.scope.to_stream(5), "'ToStream' needs an iterable of records, or a table"),
        (lambda s: s.unary(ps.Pipeline(), "U", gives_none), "'U': gives_none gave None, and is to"),
        (lambda s: s.unary_notify(ps.Pipeline(), "U", gives_none), "'U': gives_none gave None"),
        (lambda s: s.scope.source(gives_none, "S"), "'S': gives_none gave None"),
        (lambda s: s.scope.source(5), "'Source' needs a Source, which has partitions() and open()"),
        (lambda s: s.scope.source(ps.FileSource), "FileSource is the class of some: give FileSo"),
        (lambda s: s.scope.flow_controlled([], None), "'FlowControlled' waits for a probe, which"),
        (lambda s: s.scope.flow_controlled(5, ps.Probe()), "an iterable of pairs (time, batch)"),
        (lambda s: s.scope.flow_controlled([], ps.Probe(), None), "it may run None times ahead"),
        (lambda s: s.scope.iterator_source(3, ps.Probe()), "'IteratorSource' needs a function"),
        (lambda s: s.top_k(1, by=5), "'TopK' needs a function; found 5"),
        (lambda s: ps.graph.connected_components([(1, 2)]), "reads a stream of edges, and [(1, 2)"),
        (lambda s: ps.graph.connected_components(s, [3]), "reads a stream of vertices, and [3] is"),
        (lambda s: ps.graph.pagerank(s, vertices=[3]), "reads a stream of vertices, and [3] is no"),
        (lambda s: ps.graph.sssp(None, 1), "reads a stream of edges, and None is none"),
        (lambda s: s.state_machine(None), "'StateMachine' needs a function; found None"),
        (lambda s: s.aggregate(max, emit=5, key=str), "'Aggregate' needs a function; found 5"),
        (lambda s: s.window(ps.Tumbling(2), 5.5)[0], "'Window' needs a function, the name of a"),
        (lambda s: s.unary(ps.Pipeline(), "U", None), "'U' needs a function; found None"),
        (lambda s: s.unary_notify(ps.Pipeline(), "U", None), "'U' needs a function; found None"),
        (lambda s: s.iterate(3), "'Iterate' needs a function; found 3"),
        (lambda s: s.enter(None), "enters a scope that is in that one, such as iterative()"),
        (lambda s: s.enter(s), "enters a scope that is in that one, such as iterative()"),
        (lambda s: s.probe_with(None), "'Probe' has a probe follow a stream, one that probe() of"),
        (lambda s: s.command(5), "'Command' needs a command as a list of a program and its argu"),
        (lambda s: s.unary(ps.Pipeline, "U", gives_none), "'U' of scope 'Dataflow' needs a pact,"),
        (lambda s: s.scope.iterative(None), "of two types of times, as ps.Product(ps.Int, ps.Int"),
        (lambda s: s.scope.batches_to_stream(5), "'FromBatches' needs an iterable of batches"),
        (lambda s: s.scope.async_source(5), "'AsyncSource' needs an asynchronous generator func"),
        (lambda s: s.scope.concatenate([None]), "needs a list of streams, and None is none"),
        (lambda s: ps.graph.k_core(s, "2"), "k_core needs an integer as its k, not '2'"),
        (
            lambda s: ps.graph.pagerank(s, rounds=None),
            "pagerank needs an integer as its rounds, not Non",
        ),
        (
            lambda s: ps.graph.pagerank(s, damping="2"),
            "a number from 0 to 1 as its damping, not '2'",
        ),
        (lambda s: ps.graph.communities(s, rounds=1.5), "needs an integer as its rounds, not 1.5"),
        (
            lambda s: ps.graph.power_iteration_clusters(s, k=None, rounds=1),
            "needs an integer as its k",
        ),
        (lambda s: ps.graph.svd_plus_plus(s, rank=0), "svd_plus_plus needs 1 or more as its rank"),
        (lambda s: ps.graph.weighted_ranks(s, tolerance="x"), "a number above 0 as its tolerance"),
        (
            lambda s: ps.graph.weighted_ranks(s, rounds=1, sources=["a"]),
            "weighted_ranks needs an integer as each source, not 'a'",
        ),
        (lambda s: ps.graph.bfs(s, "a"), "bfs needs an integer as its source, not 'a'"),
        (lambda s: ps.graph.landmark_distances(s, "ab"), "needs a list of landmarks, not 'ab'"),
    ],
)
def test_what_is_no_code_is_refused_when_the_dataflow_is_built(act: Any, words: str) -> None:
    error, cause = cause_of(lambda s: act(rows(s, "kx", RECORDS)))
    assert isinstance(cause, UsageError)
    assert words in str(error)


def test_what_builds_no_dataflow_is_refused_before_a_worker_begins() -> None:
    for call in (
        lambda: ps.run(None),  # type: ignore[arg-type]  # as is to be seen
        lambda: ps.run(lambda scope, edges: edges),  # type: ignore[arg-type,misc]
        lambda: ps.testing.collect(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(BuildError, match=r"a function of a scope|called with a scope and"):
            call()
    with pytest.raises(ps.errors.WorkerError, match=r"returned Collection\(a long\); ps.View"):
        ps.testing.collect(lambda scope: scope.to_stream([(1,)]).as_collection("a long"))
    with pytest.raises(ps.errors.WorkerError, match="should return a stream, and returned None"):
        ps.testing.collect(lambda scope: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(ps.errors.WorkerError, match=r"'dataflow', .* of the worker .*\(worker\)"):
        ps.run(lambda worker: worker.dataflow())  # type: ignore[attr-defined]
    with pytest.raises(
        ps.errors.WorkerError, match=r"worker is asked for 'to_stream', which a sco"
    ):
        ps.execute(lambda scope: scope.to_stream([1]))  # type: ignore[attr-defined]


def test_what_is_no_worker_no_type_of_times_and_no_events_is_refused() -> None:
    for call in (
        lambda: ps.Barrier(None),  # type: ignore[arg-type]  # as is to be seen
        lambda: ps.Sequencer(5),  # type: ignore[arg-type]
        lambda: ps.SharedInput(None),  # type: ignore[arg-type]
        lambda: ps.Events(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=r"by a worker|no type of times|an iterable of events"):
            call()


def test_what_is_no_connector_and_no_type_of_times_is_not_checked() -> None:
    for check in (
        lambda: ps.testing.check_source(None),  # type: ignore[arg-type]
        lambda: ps.testing.check_sink(None, [[1], [2]], list),
        lambda: ps.testing.check_timestamp(None, [], []),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match=r"has not|is none"):
            check()


SIGNALING = Decimal("sNaN")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "act",
    [
        lambda s, key: s.aggregate(lambda k, r, n: n, key=key),
        lambda s, key: s.reduce(max, key=key),
        lambda s, key: s.top_k(1, key=key),
        lambda s, key: s.map(lambda r: (key(r), r)).state_machine(lambda k, r, n: (n, [])),
        lambda s, key: s.map(key).distinct(),
        lambda s, key: s.join(s, key),
        lambda s, key: s.window(ps.Tumbling(2), key=key)[0],
    ],
    ids=["aggregate", "reduce", "top_k", "state_machine", "distinct", "join", "window"],
)
def test_a_key_that_cannot_be_one_is_said_on_one_worker_as_on_several(
    act: Any, workers: int
) -> None:
    for key, said in (([1], "tuple(key)"), ((1, {}), "tuple(sorted"), (SIGNALING, "is quiet")):
        error, cause = cause_of(
            lambda s, key=key: act(s.to_stream([1]), lambda record: key), workers
        )
        assert isinstance(
            cause if isinstance(cause, KeyHashError) else cause.__cause__, KeyHashError
        )
        assert said in str(error)


def test_the_advice_for_arrays_is_what_they_take() -> None:
    error, _ = cause_of(lambda s: arrays(s, "kx", RECORDS).filter(pc.field("x") > 1))
    assert "NumPy arrays: name a column instead" in str(error)


@pytest.mark.parametrize("make", [rows, arrays])
def test_an_expression_is_a_key_of_record_batches_only(make: Any) -> None:
    error, _ = cause_of(lambda s: make(s, "kx", RECORDS).exchange(pc.field("k") + 1), 2)
    assert "is an expression of Arrow record batches" in str(error)


@pytest.mark.parametrize("limit", [2.5, "3", -1, True])
def test_a_limit_that_no_round_reaches_is_refused(limit: Any) -> None:
    """At 2.5 a loop would go on for ever."""
    _, cause = cause_of(lambda s: s.to_stream([1]).iterate(lambda a: a.map(str), limit=limit))
    assert isinstance(cause, BuildError)
    _, cause = cause_of(lambda s: s.feedback(1, limit=limit)[1])
    assert isinstance(cause, BuildError)
    assert repr(limit) in str(cause)


def test_rounds_that_are_expected_are_an_integer() -> None:
    def build(scope: Any) -> Any:
        loop, again = scope.feedback(1, expect=2.5)
        loop.connect(again)
        return again

    _, cause = cause_of(build)
    assert isinstance(cause, FeedbackError)


def test_a_route_beyond_the_workers_names_the_batch() -> None:
    error, cause = cause_of(lambda s: arrays(s, "kx", RECORDS).distribute(lambda t, b: 9), 2)
    assert isinstance(cause.__cause__ or cause, RouteError)
    assert "routed to 9" in str(error)


def test_a_stream_of_another_dataflow_and_a_time_are_refused_by_what_they_are() -> None:
    def two_dataflows(worker: Any) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
        with worker.dataflow() as scope:
            scope.to_stream([2]).concat(stream)

    def two_of_collections(worker: Any) -> None:
        with worker.dataflow() as scope:
            _, table = scope.new_collection("n long")
        with worker.dataflow() as scope:
            scope.new_collection("n long")[1].concat(table)

    def no_durable(worker: Any) -> None:
        with worker.dataflow(durable="folder"):
            pass

    def no_capability(worker: Any) -> None:
        def build(capability: Any, info: Any) -> Any:
            def logic(input: Any, output: Any) -> None:
                for time, _ in input:
                    output.session(time.time)

            return logic

        with worker.dataflow() as scope:
            scope.to_stream([1]).unary(ps.Pipeline(), "Sends", build)

    for main, words in (
        (two_dataflows, "cannot read a stream of another dataflow, of scope 'Dataflow'"),
        (two_of_collections, "a collection of .* cannot be used in another dataflow"),
        (no_durable, r"'Dataflow' is durable by a Durable\(.*; found 'folder'"),
        (no_capability, r"'Sends' sends with a capability, and was given 0 \(int\)"),
    ):
        with pytest.raises(ps.errors.WorkerError, match=words):
            ps.execute(main)


def test_what_another_library_calls_an_operator_is_said_to_be_called_otherwise_here() -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([1])
        for name, words in (
            ("flatMap", "no attribute 'flatMap'; it is called 'flat_map' here"),
            ("key_by", "no attribute 'key_by'; here: .* takes it as key="),
            ("unionAll", "no attribute 'unionAll'; here: concat"),
            ("count_final", r"'count_final'; here: aggregate\(fold, key=, default=0\)"),
            ("collect_window", "'collect_window'; here: window, whose results have the records"),
            ("enter_at", r"'enter_at'; here: enter\(scope\), then delay"),
            ("nothing", "no attribute 'nothing'$"),
        ):
            with pytest.raises(AttributeError, match=words):
                getattr(stream, name)
        return stream

    assert ps.testing.collect(build) == [(0, 1)]
