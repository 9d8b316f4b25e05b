"""What a run gives is a list, and one table where the workers returned tables or columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import ContainerError, SchemaError


def results(*found: Any) -> ps.RunResults[Any]:
    return ps.execute(lambda worker: found[worker.index], workers=len(found), threads=True)


def test_it_is_a_list_in_all_that_it_does() -> None:
    found = ps.execute(lambda worker: worker.index, workers=2, threads=True)
    assert found == [0, 1]
    assert isinstance(found, list)
    assert repr(found) == "[0, 1]"
    assert found.index(1) == 1
    again = pickle.loads(pickle.dumps(found))
    assert (again, type(again)) == (found, ps.RunResults)


def test_processes_give_the_same() -> None:
    found = ps.execute(lambda worker: {"n": [worker.index]}, workers=2)
    assert found.table().to_pydict() == {"n": [0, 1]}


def test_every_form_of_columns_is_taken_in_the_order_of_the_workers() -> None:
    pandas = pytest.importorskip("pandas")
    found = results(
        pa.table({"n": [0]}),
        pa.RecordBatch.from_pydict({"n": [1]}),
        pandas.DataFrame({"n": [2]}),
        {"n": np.array([3])},
        None,
        [],
        [{"n": [4]}, pa.table({"n": [5]})],
    )
    table = found.table()
    assert table.to_pydict() == {"n": [0, 1, 2, 3, 4, 5]}
    assert table.column("n").num_chunks == 1


def test_columns_of_one_name_are_one_and_types_are_widened() -> None:
    table = results({"a": [1], "b": ["x"]}, {"a": [2.5]}).table()
    assert table.to_pydict() == {"a": [1.0, 2.5], "b": ["x", None]}


@pytest.mark.parametrize("wrong", [3, "text", [1, 2], [(1, 2)], object()])
def test_what_has_no_columns_is_refused_by_the_worker_that_gave_it(wrong: Any) -> None:
    with pytest.raises(ContainerError, match="what worker 1 returned"):
        results({"n": [1]}, wrong).table()


@pytest.mark.parametrize("wrong", [{"n": [1], "m": [1, 2]}, {"n": [1, "x"]}, [{"n": 1}]])
def test_a_dict_that_is_not_columns_is_refused_by_the_worker_that_gave_it(wrong: Any) -> None:
    with pytest.raises(ContainerError, match="what worker 1 returned has a dict, which is to be"):
        results({"n": [1]}, wrong).table()


def test_nothing_at_all_is_no_table() -> None:
    with pytest.raises(ContainerError, match="each worker returned None or an empty list"):
        results(None, []).table()


def test_types_that_do_not_go_together_are_named() -> None:
    with pytest.raises(SchemaError, match=r"n: int64; n: string"):
        results({"n": [1]}, {"n": ["a"]}).table()
