"""Records on which expressions and functions fail: raised, left out, or a collection of errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import by_record
from pointstamp.collections.linear import computing
from pointstamp.collections.row_errors import ERRORS
from pointstamp.errors import BuildError, OperatorError
from tests.collections.failing import Failing, check_failing, failing_programs
from tests.conftest import examples


def changes(view: ps.View) -> dict[str, Any]:
    found: dict[str, Any] = view.advance()
    return found


def test_an_error_is_there_as_long_as_its_record_is() -> None:
    def build(scope: Any, t: Any) -> Any:
        results, errors = t.select("k", share=10 / col("n"), on_error="route")
        assert str(errors.schema) == str(ERRORS)
        return {"results": results, "errors": errors}

    view = ps.View(build, t="k string, n long?")
    view.insert("t", [("a", 5), ("b", 0), ("c", None), ("b", 0), ("d", 0)])
    found = changes(view)
    assert found["results"] == [(("a", 2.0), 1), (("c", None), 1)]
    said = "DataError: 10.0 is divided by 0, in (10 / col('n'))"
    assert [row for row, _ in found["errors"]] == [
        ("Select", said, "('b', 0)"),
        ("Select", said, "('d', 0)"),
    ]
    assert [n for _, n in found["errors"]] == [1, 1]
    view.delete("t", [("b", 0), ("d", 0)])
    assert changes(view) == {"results": [], "errors": [(("Select", said, "('d', 0)"), -1)]}
    view.delete("t", [("b", 0)])
    assert changes(view) == {"results": [], "errors": [(("Select", said, "('b', 0)"), -1)]}


def test_a_join_does_not_multiply_an_error() -> None:
    def build(scope: Any, t: Any, u: Any) -> Any:
        joined = t.join(u, on="k").drop("m")
        results, errors = joined.filter(1 / col("n") > 0, on_error="route")
        return {"results": results, "errors": errors}

    view = ps.View(build, t="k long, n long", u="k long, m long")
    view.insert("t", [(1, 0)])
    view.insert("u", [(1, m) for m in range(9)])
    assert [n for _, n in changes(view)["errors"]] == [1]
    view.delete("u", [(1, m) for m in range(8)])
    assert changes(view) == {"results": [], "errors": []}
    view.delete("u", [(1, 8)])
    assert [n for _, n in changes(view)["errors"]] == [-1]


def test_functions_fail_as_expressions_do_and_give_all_rows_or_none() -> None:
    def parts(row: Any) -> Any:
        yield (row[0], 1)
        if row[0] == "bad":
            raise ValueError("no number")
        yield (row[0], "x" if row[0] == "worse" else 2)

    def build(scope: Any, t: Any) -> Any:
        mapped = t.map(lambda row: (int(row[0]),), "n long", on_error="route", name="Number")
        several = t.flat_map(parts, "k string, n long", on_error="route")
        return {"n": mapped[0], "n errors": mapped[1], "k": several[0], "k errors": several[1]}

    view = ps.View(build, t="t string")
    view.insert("t", [("7",), ("bad",), ("worse",), ("8",)])
    found = changes(view)
    assert found["n"] == [((7,), 1), ((8,), 1)]
    assert found["k"] == [(("7", 1), 1), (("7", 2), 1), (("8", 1), 1), (("8", 2), 1)]
    assert [row for row, _ in found["n errors"]] == [
        ("Number", f"ValueError: invalid literal for int() with base 10: {t!r}", f"({t!r},)")
        for t in ("bad", "worse")
    ]
    (worse, bad) = [row for row, _ in found["k errors"]]
    assert bad == ("FlatMap", "ValueError: no number", "('bad',)")
    assert worse[1].startswith("DataError: row 1 for operator 'FlatMap', column 'n'")


def test_what_is_dropped_is_counted_and_what_is_raised_stops() -> None:
    def build(scope: Any, t: Any) -> Any:
        kept = t.with_columns(r=col("n").sqrt(), on_error="drop")
        return kept.map(lambda row: (1 // row[0],), "m long", on_error="drop", name="Inverse")

    view = ps.View(build, t="n long")
    view.insert("t", [(1,), (-1,), (-2,), (0,)])
    assert view.advance() == [((1,), 1)]
    assert view.dropped == {"WithColumns": 2, "Inverse": 1}
    view.delete("t", [(-1,)])
    view.advance()
    assert view.dropped["WithColumns"] == 3
    for raising in (
        ps.View(lambda scope, t: t.select(r=col("n").sqrt()), t="n long"),
        ps.View(lambda scope, t: t.select(r=col("n").sqrt(), on_error="raise"), t="n long"),
    ):
        raising.insert("t", [(-1,)])
        with pytest.raises(OperatorError, match=r"'Select'.*-1\.0 has no value, in col.*sqrt"):
            raising.advance()


def test_what_cannot_be_text_is_shown_as_something_else() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail(row: Any) -> Any:
        raise Unprintable if row[0] else ValueError("\ud800")

    view = ps.View(lambda scope, t: t.map(fail, "n long", on_error="route")[1], t="n long")
    view.insert("t", [(0,), (1,)])
    messages = [row[1] for row, _ in view.advance()]
    assert messages == ["Unprintable: (its text failed: ValueError)", "ValueError: ?"]


def test_columns_as_they_are_fail_on_nothing_and_have_errors_too() -> None:
    def build(scope: Any, t: Any) -> Any:
        results, errors = t.select("b", "a", on_error="route")
        return {"results": results, "errors": errors}

    view = ps.View(build, t="a long, b long")
    view.insert("t", [(1, 2)])
    assert changes(view) == {"results": [((2, 1), 1)], "errors": []}


def test_a_policy_that_is_none_and_window_functions_are_refused() -> None:
    rank = ps.rank().over("a", order_by="b")

    def unknown(scope: Any, t: Any) -> Any:
        return t.filter(col("a") > 0, on_error="ignore")

    def of_windows(scope: Any, t: Any) -> Any:
        return t.with_columns(r=rank, on_error="drop")

    with pytest.raises(BuildError, match="on_error is one of 'raise', 'route' and 'drop', not 'ig"):
        ps.View(unknown, t="a long, b long")
    with pytest.raises(BuildError, match="on_error='drop' and window functions: select what"):
        ps.View(of_windows, t="a long, b long")


def test_errors_of_a_loop_leave_it_and_follow_its_rounds() -> None:
    def build(scope: Any, t: Any) -> Any:
        errors: list[Any] = []

        def step(found: Any) -> Any:
            results, failed = found.select(n=12 / col("n") - 3, on_error="route")
            errors.append(failed.leave())
            return results.concat(t).distinct()

        result = t.iterate(step, limit=4)
        return {"result": result, "errors": errors[0]}

    view = ps.View(build, t="n double")
    # By hand: 4 is followed by 0, on which it fails, in round 1.
    view.insert("t", [(4.0,)])
    found = changes(view)
    assert found["result"] == [((0.0,), 1), ((4.0,), 1)]
    assert [(row[2], n) for row, n in found["errors"]] == [("(0.0,)", 1)]
    view.delete("t", [(4.0,)])
    assert [(row[2], n) for row, n in changes(view)["errors"]] == [("(0.0,)", -1)]


@settings(max_examples=examples(120))
@given(
    failing_programs, st.sampled_from([1, 2, 3]), st.sampled_from([1, 3]), st.integers(0, 1 << 20)
)
def test_results_and_errors_are_those_of_trying_each_record(
    program: Failing, workers: int, at_a_time: int, seed: int
) -> None:
    check_failing(program, workers, at_a_time, seed)


def test_of_many_records_of_which_one_fails_few_are_tried_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def counting(bound: Any, schema: Any) -> Any:
        change = computing(bound, schema)

        def counted(rows: Any) -> Any:
            sizes.append(len(rows))
            return change(rows)

        return counted

    monkeypatch.setattr(by_record, "computing", counting)
    view = ps.View(lambda scope, t: t.select(x=1 / col("n"), on_error="drop"), t="n long")
    view.insert("t", [(n,) for n in range(1, 8_001)])
    view.advance()
    assert sum(sizes) == 8_000
    view.insert("t", [(n,) for n in range(-4_000, 4_000)])
    assert len(view.advance()) == 7_999
    assert view.dropped == {"Select": 1}
    # All, and then two halves of each half that fails.
    assert sum(sizes) < 8_000 * 4
    assert len(sizes) < 60
