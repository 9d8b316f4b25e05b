"""A NaN is one key for whoever groups, and none for whoever joins, whatever it was sent through."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, field
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint.keyed_state import KeyedRows
from pointstamp.containers import Arrays
from pointstamp.containers.key_hashes import is_its_own_key
from pointstamp.containers.keys import canonical_key, has_nan, hash_key
from pointstamp.operators.window_functions import AggregatedRows, Collect
from pointstamp.operators.window_state import open_windows

NAN = math.nan


def copied(value: Any) -> Any:
    """As it is after a way between processes: NaNs are other objects."""
    return pickle.loads(pickle.dumps(value))


KEYS = st.recursive(
    st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none()),
    lambda parts: st.tuples(parts, parts),
    max_leaves=4,
)


@given(KEYS)
def test_what_is_alike_stays_alike_when_it_is_sent(key: Any) -> None:
    assert {canonical_key(key): 1}[canonical_key(copied(key))] == 1
    assert has_nan(key) or canonical_key(key) is key
    assert hash_key(canonical_key(key)) == hash_key(key)


def _has_nan(key: Any) -> bool:
    return any(map(_has_nan, key)) if isinstance(key, tuple) else key != key


@given(st.one_of(KEYS, st.binary(max_size=2), st.booleans(), st.tuples(st.booleans(), KEYS)))
def test_a_key_of_the_usual_types_is_its_own_key_but_for_nans(key: Any) -> None:
    assert is_its_own_key(key) is not _has_nan(key)
    assert {key: 1} if is_its_own_key(key) else has_nan(key)


def test_what_may_equal_another_key_or_none_is_asked_further() -> None:
    for key in ([1], ([1],), {}, 1j, (1, {2}), frozenset([1]), np.int64(3), Named("a", 1.0)):
        assert not is_its_own_key(key)


class Named(NamedTuple):
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Held:
    name: str
    value: Any
    note: float = field(default=0.0, compare=False)


@pytest.mark.parametrize(
    "key",
    [Named("a", NAN), Held("a", NAN), Held("a", (1, NAN)), frozenset([NAN, 1]), (Named("", NAN),)],
)
def test_what_has_a_nan_is_alike_and_stays_of_its_type(key: Any) -> None:
    one, other = canonical_key(copied(key)), canonical_key(copied(key))
    assert one == other
    assert hash(one) == hash(other)
    assert type(one) is type(key)
    assert hash_key(one) == hash_key(key)
    assert has_nan(one)
    assert sorted(repr(one)) == sorted(repr(key))  # sets have their parts in any order


def test_a_nan_of_a_field_is_one_wherever_it_is_looked_at() -> None:
    held = canonical_key(Held("a", NAN))
    assert canonical_key(held) == held
    assert held.value != held.value  # by which many programs ask for a NaN
    assert math.isnan(held.value)
    assert np.isnan(np.array([held.value])).all()
    assert pa.array([held.value]).type == pa.float64()
    sent = copied(held)
    assert type(sent.value) is float
    assert canonical_key(sent) == held


def test_a_field_that_is_not_compared_makes_no_nan_of_its_record() -> None:
    held = Held("a", 1.0, NAN)
    assert not has_nan(held)
    assert canonical_key(held) is held


def each_at_its_time(scope: Any, make: Any) -> Any:
    """NaN and 1 at each of three times, each batch by itself, and each NaN an object of its own."""
    return scope.concatenate(
        [
            make(scope, scope.index == 0).delay_batch(lambda time, later=later: later)
            for later in range(3)
        ]
    )


def of_rows(scope: Any, is_there: bool) -> Any:
    return scope.to_stream(copied([((NAN, 0), 1), ((1.0, 0), 1)]) if is_there else [])


def of_columns(scope: Any, is_there: bool) -> Any:
    batch = pa.RecordBatch.from_pydict({"k": [NAN, 1.0], "l": [0, 0]})
    return scope.batches_to_stream([batch] if is_there else [])


def of_arrays(scope: Any, is_there: bool) -> Any:
    batch = Arrays(k=np.array([NAN, 1.0]), l=[0, 0])
    return scope.batches_to_stream([batch] if is_there else [])


over = pytest.mark.parametrize("make", [of_rows, of_columns, of_arrays], ids=lambda m: m.__name__)


def by_key(make: Any) -> Any:
    return (lambda record: record[0]) if make is of_rows else ["k", "l"]


@over
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_state_is_kept_for_a_nan_from_time_to_time(make: Any, workers: int) -> None:
    def count(key: Any, records: Any, n: int) -> Any:
        answer = [(str(key[0]), n + 1)]
        if make is of_rows:
            return n + 1, answer
        return n + 1, Arrays(k=[answer[0][0]], n=[n + 1])

    def build(scope: Any) -> Any:
        return each_at_its_time(scope, make).state_machine(count, key=by_key(make), default=0)

    expected = [(t, (k, t + 1)) for t in range(3) for k in ("1.0", "nan")]
    assert ps.testing.collect(build, workers) == expected


@over
def test_a_session_goes_on_for_a_nan(make: Any) -> None:
    def build(scope: Any) -> Any:
        stream = each_at_its_time(scope, make)
        done, _ = stream.window(ps.Sessions(10), key=by_key(make))
        return done.count()

    (time, n_records), *more = ps.testing.collect(build)
    assert (time, n_records, more) == (12, 2 if make is of_rows else 6, [])


def test_rows_are_aggregated_by_nan_alike_in_processes() -> None:
    def build(scope: Any) -> Any:
        pairs = scope.to_stream([(NAN, 1), ("a", 2)])
        return pairs.aggregate(lambda key, x, n: n + x, default=0).map(lambda r: (str(r[0]), r[1]))

    found = ps.testing.collect(build, 2, threads=False)
    assert found == [(0, ("a", 4)), (0, ("nan", 2))]


@pytest.mark.parametrize("retain", [False, True])
def test_a_nan_joins_nothing_in_rows_as_in_columns(retain: bool) -> None:
    def build(scope: Any) -> Any:
        left, right = scope.to_stream([NAN, (NAN, 1), 2.0]), scope.to_stream([NAN, (NAN, 1), 2])
        return left.join(right, retain=retain)

    assert ps.testing.collect(build, 1) == [(0, (2.0, 2))]


def test_a_nan_that_was_stored_is_found_again() -> None:
    counts = AggregatedRows(lambda record: record, lambda record: 1, add)
    assert counts.combine(copied([(NAN, 1), ((NAN, 1), 1)]) + counts.prepare([NAN, (NAN, 1)])) == [
        (pytest.approx(NAN, nan_ok=True), 2),
        ((pytest.approx(NAN, nan_ok=True), 1), 2),
    ]
    table = KeyedRows()
    deltas = []
    for n in (1, 2):
        table[canonical_key(NAN)] = n
        deltas += [change.batch for change in table.take_delta().changes.values()]
        table.begin_anew()
    again = KeyedRows()
    again.load(deltas, 0, 1)
    assert len(again) == 1
    assert again[canonical_key(copied(NAN))] == 2


@over
def test_a_session_of_a_nan_goes_on_after_a_restart(make: Any) -> None:
    batch = copied([NAN]) if make is of_rows else Arrays(k=[NAN])
    keys = [(lambda record: record) if make is of_rows else "k"]
    sessions, again = (open_windows(ps.Sessions(10), keys, Collect(keys[0])) for _ in range(2))
    sessions.add(0, batch, np.array([0]))
    for tag, part in copied(list(sessions.stored())):
        again.restore(tag, part)
    again.add(0, batch, np.array([5]))
    assert [(pane.start, pane.end) for pane in again.pop(15)] == [(0, 15)]
