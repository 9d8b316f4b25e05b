"""Starts what Arrow starts once, so that no single test is blamed for it."""

from __future__ import annotations

import io

import pyarrow.csv
import pytest


@pytest.fixture(scope="session", autouse=True)
def arrow_is_warm() -> None:
    """With its first CSV, Arrow opens a pipe for signals that it keeps until the end."""
    pyarrow.csv.read_csv(io.BytesIO(b"a,b\n1,2\n"))
