"""Loops of collections give at each epoch what applying their bodies gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.errors import BuildError, FeedbackError, LoopWarning, SchemaError
from pointstamp.operators import feedback
from tests.collections.checks import check_view, check_workers
from tests.collections.lattice_programs import LatticeProgram, check_lattice, lattice_programs
from tests.collections.loops import LoopProgram, loop_programs
from tests.conftest import examples


@settings(max_examples=examples(210))
@given(loop_programs())
def test_a_view_of_a_loop_is_what_recomputing_gives(program: LoopProgram) -> None:
    check_view(program)


@settings(max_examples=examples(200))
@given(
    loop_programs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 1 << 20),
)
def test_workers_of_a_loop_give_what_recomputing_gives(
    program: LoopProgram, workers: int, at_a_time: int, seed: int
) -> None:
    check_workers(program, workers, at_a_time, seed)


def test_records_enter_at_rounds_of_their_own() -> None:
    rounds: list[tuple[int, int]] = []

    def build(scope: ps.Scope, t: ps.Collection) -> ps.Collection:
        with scope.iterative() as inner:
            inside = t.enter_at(inner, round=col("a") * 2)
            seen = inside.inspect(lambda row, time, diff: rounds.append((row[0], time[1])))
            return seen.leave()

    view = ps.View(build, t="a long")
    view.insert("t", [(-3,), (0,), (2,)])
    assert view.advance() == [((-3,), 1), ((0,), 1), ((2,), 1)]
    assert sorted(rounds) == [(-3, 0), (0, 0), (2, 4)]


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_a_body_is_applied_as_often_as_the_limit_says(limit: int) -> None:
    def build(scope: Any, a: Any, b: Any) -> Any:
        within = a.iterate(lambda x: x.select(n=col("n") * 3), limit=1)
        return {
            "columns": a.iterate(lambda x: x.select(n=col("n") + 1), limit=limit),
            "records": b.iterate(lambda x: x.map(lambda n: n + 1), limit=limit),
            "loop in a loop": within.iterate(
                lambda x: x.iterate(lambda y: y.select(n=col("n") + 1), limit=limit), limit=2
            ),
        }

    with ps.View(build, a="n long", b=None) as view:
        view.insert("a", [(1,), (7,)])
        view.insert("b", [1, 7])
        view.advance()
        view.delete("a", [(7,)])
        view.delete("b", [7])
        view.advance()
        assert view.snapshot("columns")[:] == [(1 + limit,)]
        assert view.snapshot("records")[:] == [1 + limit]
        assert view.snapshot("loop in a loop")[:] == [(3 + 2 * limit,)]


def test_a_round_that_is_no_integer_is_refused() -> None:
    def build(scope: ps.Scope, t: ps.Collection) -> ps.Collection:
        with scope.iterative() as inner, pytest.raises(SchemaError, match="should be an integer"):
            t.enter_at(inner, round=col("b"))
        return t

    ps.View(build, t="a long, b long?").close()


def test_a_loop_that_goes_on_says_what_still_changes() -> None:
    def build(scope: ps.Scope, t: ps.Collection) -> ps.Collection:
        return t.iterate(lambda found: found.select(a=col("a") + 1), limit=5, expect=2)

    view = ps.View(build, t="a long")
    view.insert("t", [(7,)])
    with pytest.warns(LoopWarning, match=r"still changes after .*\(\d+,\)"):
        assert view.advance() == [((12,), 1)]


def test_what_cannot_be_a_loop_is_refused() -> None:
    def build(scope: ps.Scope, t: ps.Collection) -> ps.Collection:
        with pytest.raises(BuildError, match="no rounds"):
            scope.variable("a long")  # type: ignore[attr-defined]  # of scopes with collections
        with pytest.raises(BuildError, match="should return a Collection, and returned 7"):
            t.iterate(lambda found: 7)  # type: ignore[arg-type,return-value]  # on purpose
        with pytest.raises(SchemaError, match="columns should be the same"):
            t.iterate(lambda found: found.select(b="a"))
        with pytest.raises(BuildError, match="expect=0"):
            t.iterate(lambda found: found, expect=0)
        return t

    # And the dataflow with them: they were begun, and are not finished.
    with pytest.raises(BuildError, match="begun and not finished"):
        ps.View(build, t="a long")


def test_values_beside_others_go_round() -> None:
    def build(scope: ps.Scope, t: ps.Collection) -> ps.Collection:
        def step(found: ps.Collection) -> ps.Collection:
            return found.group_by("k").agg(a=ps.min("a"), t=ps.min_by("t", by="a"))

        return t.select("k", "a", "t").iterate(step)

    view = ps.View(build, t="k long, a long, t string?")
    view.insert("t", [(1, 3, "three"), (1, 2, "two"), (2, 5, None)])
    assert view.advance() == [((1, 2, "two"), 1), ((2, 5, None), 1)]
    view.delete("t", [(1, 2, "two")])
    assert view.advance() == [((1, 2, "two"), -1), ((1, 3, "three"), 1)]


@pytest.mark.parametrize("ahead", [1, 4])
def test_few_epochs_are_in_a_loop(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "AHEAD", ahead)
    n_epochs, seen, out = 20, list[tuple[int, int]](), set[Any]()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("few") as scope:
            numbers, collection = scope.new_collection("k long, a long")

            def step(found: ps.Collection) -> ps.Collection:
                further = found.filter(col("a") > 0).select("k", a=col("a") - 1)
                entered = further.concat(collection).distinct()
                return entered.inspect(lambda row, time, diff: seen.append(time))

            reached = collection.iterate(step)
            reached.inspect(lambda row, time, diff: out.add((row, time, diff)))
            probe = reached.probe()
        for epoch in range(n_epochs):
            numbers.insert([(epoch, 3)])
            numbers.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(n_epochs))

    ps.execute(main)
    last = {epoch: at for at, (epoch, _) in enumerate(seen)}
    assert len(last) == n_epochs
    for at, (epoch, _) in enumerate(seen):
        assert all(last[before] < at for before in range(epoch - ahead + 1))
    assert {time for _, time, _ in out} == set(range(n_epochs))


@settings(max_examples=examples(300))
@given(
    lattice_programs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 1 << 20),
)
def test_operators_are_right_as_of_each_epoch_and_round(
    program: LatticeProgram, workers: int, at_a_time: int, seed: int
) -> None:
    check_lattice(program, workers, at_a_time, seed)


def test_a_variable_that_is_never_set_says_so() -> None:
    def build(scope: Any, t: Any) -> Any:
        with scope.iterative() as inner:
            return inner.variable("n long", name="Reached").leave()

    with pytest.raises(
        FeedbackError, match=r"'Reached' .* it is a variable: call set\(collection\)"
    ):
        ps.View(build, t="n long")
