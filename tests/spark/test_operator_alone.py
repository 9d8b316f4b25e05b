"""A Spark job as an operator, where the program has no session that it could take."""

from __future__ import annotations

import pytest

import pointstamp as ps
from tests.spark.test_operator import COUNTS, columns, count, main


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
def test_a_worker_in_a_process_of_its_own_has_a_session_of_its_own() -> None:
    parts = ps.execute(main, columns, count, workers=2)
    assert sorted(parts[0]) == COUNTS
    assert parts[1] == []
