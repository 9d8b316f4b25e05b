"""Every operator takes a name, which arrives where the dataflow is described."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import StructureError, WorkerError

NAME = "a name of its own"

NOT_OPERATORS = {
    # Functions of a stream, and what puts scopes and operators together.
    *("Stream.pipe", "Scope.enter", "Scope.leave"),
    *("Scope.scoped", "Scope.iterative", "Scope.region", "Scope.operator"),
    *("Scope.activation", "Scope.add_edge", "Scope.add_operator", "Scope.all_scopes"),
    *("Scope.check_stream", "Scope.close", "Scope.connect", "Scope.epochs", "Scope.install"),
    *("Scope.drawing", "Scope.ends", "Scope.leads_to", "Scope.new_stream", "Scope.path_of"),
    *("Scope.reserve", "Scope.stream_type", "Scope.structure"),
}

ELSEWHERE = {
    "Stream.spark": "needs Spark",
    "Scope.log_stream": "needs a log",
}


def methods() -> list[str]:
    """The public operator methods of streams and scopes, by introspection."""
    found = [
        f"{of.__name__}.{name}"
        for of in (ps.Stream, ps.Scope)
        for name, _ in inspect.getmembers(of, callable)
        if not name.startswith("_")
    ]
    return [name for name in found if name not in NOT_OPERATORS]


def nothing(*args: Any) -> Any:
    return lambda *handles: None


def releasing(capability: Any, info: Any) -> Any:
    capability.drop()
    return lambda *handles: None


async def no_records(input: Any) -> Any:
    for record in ():
        yield record


class Discarding:
    def open(self, context: ps.SinkContext) -> Discarding:
        return self

    def write(self, batch: Any) -> None:
        pass

    def close(self) -> None:
        pass


def arguments(stream: Any, name: str, inner: Any) -> dict[str, Any]:
    """What is given for a parameter of this name, where an operator needs one."""
    return {
        "aggregates": [("x", "sum")],
        "batches": [],
        "body": lambda again: again,
        "build": releasing,
        "clock": stream,
        "command": ["cat"],
        "default": 0,
        "fold": lambda key, record, value: value,
        "function": nothing,
        "generate": no_records,
        "inner": inner,
        "k": 2,
        "key": lambda record: record,
        "logic": lambda *handles: None,
        "max_size": 10,
        "n": 2,
        "on_frontier": nothing,
        "other": stream,
        "pact": ps.Pipeline(),
        "pact1": ps.Pipeline(),
        "pact2": ps.Pipeline(),
        "predicate": bool,
        "probe": ps.Probe(),
        "read": lambda time: None,
        "records": [],
        "reduce": lambda one, two: one,
        "route": lambda *record: 0,
        "schema": "a long",
        "sources": [],
        "stream": stream,
        "streams": [stream],
        "summary": 1,
        "timeout": timedelta(seconds=1),
        "windows": ps.Tumbling(10),
        "name": name,
    }


def call(method: str, owner: Any, stream: Any, inner: Any) -> Any:
    """The operator, with the name and with what else it needs."""
    function = getattr(owner, method.split(".")[1])
    known = arguments(stream, NAME, inner)
    if method in ("Scope.from_upserts", "Scope.from_debezium", "Stream.running_aggregate"):
        known["key"] = "a"  # a column
    if method == "Stream.sink":
        known["pact"] = Discarding()  # and no logic
    given = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.name == "name" or parameter.default is parameter.empty:
            assert parameter.name in known, f"{method}: say what {parameter.name!r} may be"
            given[parameter.name] = known[parameter.name]
    assert "name" in given, f"{method} takes no name"
    return function(**given)


@pytest.mark.parametrize("method", [m for m in methods() if m not in ELSEWHERE])
def test_a_name_arrives_in_the_structure(method: str) -> None:
    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow() as scope:
            _, stream = scope.new_input()
            inner = scope.iterative()
            with inner:
                inside = stream.enter(inner)
                if method == "Stream.leave":
                    call(method, inside, inside, inner)
                if method == "Stream.enter":
                    call(method, stream, stream, inner)
                if method == "Scope.variable":
                    made = call(method, inner, stream, inner)
                    made.set(made)
            if method not in ("Stream.leave", "Stream.enter", "Scope.variable"):
                owner = scope if method.startswith("Scope.") else stream
                made = call(method, owner, stream, inner)
                if method == "Scope.feedback":
                    made[0].connect(made[1])
                if method == "Scope.unordered_input":
                    made[0][1].drop()
        return scope.structure()

    [lines] = ps.execute(main)
    assert any(NAME in line for line in lines), lines


@pytest.mark.parametrize("method", ELSEWHERE)
def test_others_take_a_name_too(method: str) -> None:
    of, name = method.split(".")
    assert "name" in inspect.signature(getattr(getattr(ps, of), name)).parameters


@pytest.mark.parametrize("name", ["no \ud800 text", 7])
def test_what_cannot_be_written_is_no_name(name: Any) -> None:
    def build(scope: Any) -> Any:
        return scope.to_stream([1]).map(str, name=name)

    with pytest.raises(WorkerError, match=r"BuildError: an operator, .* has a text for a name"):
        ps.testing.collect(build)
    with pytest.raises(WorkerError, match=r"BuildError: an operator, .*; found"):
        ps.execute(lambda worker: worker.dataflow(name).__enter__())


def test_an_error_has_the_name() -> None:
    def build(scope: Any) -> Any:
        return scope.to_stream([1]).filter(lambda x: x / 0, name="Whole weeks")

    with pytest.raises(WorkerError, match="operator 'Whole weeks' failed at time 0"):
        ps.testing.collect(build)


def test_a_structure_error_says_which_operator_differs() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("weeks") as scope:
            numbers = scope.to_stream([1], name="Days")
            if worker.index == 1:
                numbers.filter(bool, name="Whole weeks")
            else:
                numbers.map(bool, name="Week")

    with pytest.raises(WorkerError, match="built different dataflows") as caught:
        ps.execute(main, workers=2, threads=True)
    assert isinstance(caught.value.__cause__, StructureError)
    text = str(caught.value)
    for worker, name in ((0, "Week"), (1, "Whole weeks")):
        assert f"worker {worker} has operator {name!r} [2] of scope 'weeks': 1 inputs" in text


def test_a_structure_error_says_in_what_an_operator_differs() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("weeks") as scope:
            scope.to_stream([1]).partition(2 + worker.index, int, name="Weekday")

    with pytest.raises(WorkerError) as caught:
        ps.execute(main, workers=2, threads=True)
    assert "operator 'Weekday' [2] of scope 'weeks' has 1 inputs, " in str(caught.value)


def test_a_structure_error_says_how_a_stream_differs() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("weeks") as scope:
            days = scope.batches_to_stream([], name="Days")
            days.exchange("day" if worker.index else "week", name="By week")

    with pytest.raises(WorkerError) as caught:
        ps.execute(main, workers=2, threads=True)
    assert (
        "stream from output 0 of 'Days' [1] to input 0 of 'By week' [2] of scope 'weeks' has "
        "exchange by '"
    ) in str(caught.value)
