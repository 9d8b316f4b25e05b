"""Random programs over collections give at each epoch what recomputing them gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections import spine
from pointstamp.kernels.consolidation import is_consolidated, merge
from tests.collections.checks import check_view, check_workers
from tests.collections.programs import Program, programs
from tests.conftest import examples


def checked_merge(left: Any, right: Any) -> Any:
    """What `merge` gives, which is looked at."""
    merged = merge(left, right)
    assert is_consolidated(merged)
    totals: Counter[tuple[int, ...]] = Counter()
    for row in [*left.tolist(), *right.tolist()]:
        totals[tuple(row[:-1])] += row[-1]
    assert {tuple(row[:-1]): row[-1] for row in merged.tolist()} == {
        words: n for words, n in totals.items() if n
    }
    return merged


@pytest.fixture(autouse=True)
def _look_at_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spine, "merge", checked_merge)


# With those of several workers, below, there are a thousand.
@settings(max_examples=examples(480))
@given(programs())
def test_a_view_is_what_recomputing_gives(program: Program) -> None:
    check_view(program)


@settings(max_examples=examples(210))
@given(
    programs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 1 << 20),
)
def test_workers_give_what_recomputing_gives(
    program: Program, workers: int, at_a_time: int, seed: int
) -> None:
    check_workers(program, workers, at_a_time, seed)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(
    programs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 1 << 20),
)
def test_many_programs_give_what_recomputing_gives(
    program: Program, workers: int, at_a_time: int, seed: int
) -> None:
    check_workers(program, workers, at_a_time, seed)


def test_processes_give_what_recomputing_gives() -> None:
    """Texts have other numbers in each process."""

    def main(worker: ps.Worker) -> list[tuple[Any, int, int]]:
        seen: list[tuple[Any, int, int]] = []
        if worker.index:
            from pointstamp.containers.dictionary import TEXTS

            TEXTS.number(b"a text that the other one has not")
        with worker.dataflow() as scope:
            words, collection = scope.new_collection("word string, n long?")
            totals = collection.group_by("word").agg(n=ps.sum("n"))
            totals.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        texts = ["b", "a", "", "c"] if worker.index else ["a", "c", "d"]
        words.insert([(text, None if text == "d" else len(text) + worker.index) for text in texts])
        words.close()
        worker.run()
        return seen

    found = [row for part in ps.execute(main, workers=2) for row, time, diff in part]
    assert sorted(found, key=repr) == [("", 1), ("a", 3), ("b", 2), ("c", 3), ("d", None)]
