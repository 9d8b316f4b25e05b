"""Diffs that are far too many or have no opposite: named errors, in place of those of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.collections.copies import MOST_COPIES, copied
from pointstamp.collections.negated import negated
from pointstamp.errors import DataError, OperatorError

MANY, LEAST = 2**61, -(2**63)

OF_ALL_COPIES = {
    "a list": lambda t: t.group_by("k").agg(all=ps.collect_list("n")),
    "groups": lambda t: t.group_by("k").reduce(lambda key, rows: [(len(rows),)], "n long"),
    "a batch of groups": lambda t: t.group_by("k").reduce_batches(
        lambda batch, offsets: {"n": np.diff(offsets)}, "n long"
    ),
    "partitions": lambda t: t.with_columns(at=ps.row_number().over("k", order_by="n")),
}


@pytest.mark.parametrize("what", OF_ALL_COPIES)
def test_too_many_copies_are_refused_by_how_many_there_are(what: str) -> None:
    view = ps.View(lambda scope, t: OF_ALL_COPIES[what](t), t="k long, n long")
    view.update("t", [((1, 5), MANY)])
    with pytest.raises(OperatorError, match=f": {what} would have {MANY} records, .* {2**31 - 1}"):
        view.advance()


def test_too_many_groups_of_records_are_refused() -> None:
    with pytest.raises(DataError, match=f"groups would have {2 * MANY} records"):
        copied(np.array([3, 4]), np.array([MANY, MANY]), "groups")
    for counts in ([MOST_COPIES, 1], [2**62, 2**62], [2**63 - 1, 1]):
        with pytest.raises(DataError, match=f"a list would have {sum(counts)} records"):
            copied(np.array([3, 4]), np.array(counts), "a list")
    assert copied(np.array([3, 4, 5]), np.array([2, 0, 1]), "a list").tolist() == [3, 3, 5]
    assert copied(np.empty((0, 2)), np.empty(0, np.int64), "a list").shape == (0, 2)


def test_a_snapshot_of_too_many_copies_says_how_many_it_has() -> None:
    with ps.View(lambda scope, t: t, t="n long") as view:
        view.update("t", [((1,), MANY)])
        assert view.advance() == [((1,), MANY)]
        snapshot = view.snapshot()
        assert len(snapshot) == MANY
        uses: list[Callable[[Any], object]] = [repr, lambda s: s[0], lambda s: s.to_arrow()]
        for use in uses:
            with pytest.raises(DataError, match=f"of all would have {MANY} records"):
                use(snapshot)


WITH_OPPOSITES = {
    "Negate": lambda t, now: t.negate(),
    "TemporalFilter": lambda t, now: t.temporal_filter("at", "until", clock=now),
    "Window": lambda t, now: t.window(ps.Tumbling(10), time="at", clock=now),
}


def _pass(view: ps.View, *times: int) -> None:
    for now in times:
        view.advance(now=now)


@pytest.mark.parametrize("name", WITH_OPPOSITES)
def test_the_least_diff_has_no_opposite(name: str) -> None:
    view = ps.View(
        lambda scope, t, now: WITH_OPPOSITES[name](t, now),
        t="k long, at long, until long",
        now=ps.ClockInput("long"),
    )
    view.update("t", [((1, 5, 7), LEAST)])
    with pytest.raises(OperatorError, match=rf"'{name}' failed at .*: a diff of {LEAST} has no"):
        _pass(view, 6, 12)


def test_all_other_diffs_have_an_opposite() -> None:
    rows = np.array([[1, LEAST + 1], [LEAST, 7], [3, 0]])
    assert negated(rows).tolist() == [[1, 2**63 - 1], [LEAST, -7], [3, 0]]
    assert rows[1, 1] == 7
    with pytest.raises(DataError, match="has no opposite of 64 bits"):
        negated(np.array([[1, LEAST]]))
    assert negated(rows[:0]).shape == (0, 2)
