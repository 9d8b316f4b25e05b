"""Names of columns that are one name to Spark, without a session."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pointstamp.errors import SchemaError
from pointstamp.spark.frame_checks import check_all_names, minds_case


class Frame:
    """A DataFrame as far as its names are asked for; counts how often they are."""

    def __init__(self, columns: Sequence[str], said: str = "false") -> None:
        self._columns = columns
        self.n_asked = 0
        self.sparkSession = SimpleNamespace(conf={"spark.sql.caseSensitive": said})

    @property
    def columns(self) -> Sequence[str]:
        self.n_asked += 1
        return self._columns


@pytest.mark.parametrize("said", ["true", "True", "TRUE"])
def test_case_is_minded_however_that_is_written(said: str) -> None:
    frame: Any = Frame(["w", "W"], said)
    assert minds_case(frame)
    check_all_names(frame, "edges")
    assert not minds_case(Frame([]))  # type: ignore[arg-type]  # as far as it is asked


def test_names_are_asked_for_once_however_many_there_are() -> None:
    frame: Any = Frame([f"c{n}" for n in range(500)])
    check_all_names(frame, "edges")
    assert frame.n_asked == 1
    with pytest.raises(SchemaError, match="edges have the columns 'w' and 'W', which are one name"):
        check_all_names(Frame(["a", "w", "W"]), "edges")  # type: ignore[arg-type]  # as above
