"""What users are told: the operator whose code it was, and what to do about it."""

from __future__ import annotations

import datetime
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
            ["batches of columns", "key='user'"],
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
        (lambda s: s.scope.to_stream(5), "'ToStream' needs an iterable of records, or a table"),
        (lambda s: s.unary(ps.Pipeline(), "U", gives_none), "'U': gives_none gave None, and is to"),
        (lambda s: s.unary_notify(ps.Pipeline(), "U", gives_none), "'U': gives_none gave None"),
        (lambda s: s.scope.source(gives_none, "S"), "'S': gives_none gave None"),
        (lambda s: ps.graph.bfs(s, "a"), "bfs needs an integer as its source, not 'a'"),
        (lambda s: ps.graph.landmark_distances(s, "ab"), "needs a list of landmarks, not 'ab'"),
    ],
)
def test_what_is_no_code_is_refused_when_the_dataflow_is_built(act: Any, words: str) -> None:
    error, cause = cause_of(lambda s: act(rows(s, "kx", RECORDS)))
    assert isinstance(cause, UsageError)
    assert words in str(error)


def test_the_advice_for_arrays_is_what_they_take() -> None:
    error, _ = cause_of(lambda s: arrays(s, "kx", RECORDS).filter(pc.field("x") > 1))
    assert "Arrays: name a column instead" in str(error)


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
