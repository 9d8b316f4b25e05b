"""Random changes of texts by key, whose quantiles are kept, and what recomputing gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections import order
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_order import TextOrder

LONG = "a text that is long, "
TEXTS_DRAWN = ["", "a", "ab", "é", "zz", None, *(f"{LONG}{end}" for end in "cabed"), LONG]
SHARES = (0.0, 0.1, 0.5, 0.75, 1.0)

Row = tuple[int, str | None]


@dataclass(frozen=True)
class TextChanges:
    """Epochs of changes, of which some delete what has not come yet."""

    epochs: list[list[tuple[Row, int]]]
    share: float
    most: int
    """Labels of texts are from minus so much to it: with few, texts share them."""


def text_changes() -> st.SearchStrategy[TextChanges]:
    row = st.tuples(st.integers(0, 1), st.sampled_from(TEXTS_DRAWN))
    epoch = st.lists(st.tuples(row, st.sampled_from([1, 1, 1, 2, 3, -1, -2])), max_size=8)
    return st.builds(
        TextChanges,
        st.lists(epoch, min_size=1, max_size=7),
        st.sampled_from(SHARES),
        st.sampled_from([1, 2, 1 << 62]),
    )


def expected(rows: Counter[Row], share: Fraction) -> dict[int, str | None]:
    """By key the value at a share, of values that are there."""
    found: dict[int, str | None] = {}
    for key in (0, 1):
        group = {text: n for (k, text), n in rows.items() if k == key}
        if sum(group.values()) > 0:
            there = sorted(
                text.encode()
                for text, n in group.items()
                if text is not None
                for _ in range(max(n, 0))
            )
            place = max(-(-share.numerator * len(there) // share.denominator) - 1, 0)
            found[key] = there[place].decode() if there else None
    return found


def check_text_quantiles(program: TextChanges) -> None:
    """After each epoch, through a view."""

    def build(scope: Any, t: Any) -> Any:
        return t.group_by("k").agg(q=ps.quantile("t", program.share), m=ps.median("t"))

    with patch.object(order, "TEXT_ORDER", TextOrder(TEXTS, program.most)):
        view = ps.View(build, t="k long, t string?")
        rows: Counter[Row] = Counter()
        for changes in program.epochs:
            view.update("t", changes)
            for row, diff in changes:
                rows[row] += diff
            view.advance()
            shares = expected(rows, Fraction(repr(program.share)))
            halves = expected(rows, Fraction(1, 2))
            assert view.snapshot() == [(k, shares[k], halves[k]) for k in sorted(shares)]
        view.close()


_COUNTER = count()


def check_first_of_texts(ends: Sequence[str], greatest: bool) -> None:
    """The first of texts that begin alike, which come one by one and are new to the process."""
    begin = f"{LONG}{next(_COUNTER)}, "

    def build(scope: Any, t: Any) -> Any:
        return t.group_by("k").top_k(1, by="t", descending=greatest)

    with patch.object(order, "TEXT_ORDER", TextOrder(TEXTS, 1)):
        view = ps.View(build, t="k long, t string")
        for end in ends:
            view.update("t", [((0, begin + end), 1)])
        view.advance()
        assert view.snapshot() == [(0, begin + (max if greatest else min)(ends))]
        view.close()
