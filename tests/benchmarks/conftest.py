"""No test of the benchmarks builds programs in Rust, which takes minutes, but one that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.harness import rust


@pytest.fixture(autouse=True)
def without_rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is beside the checkout is not found, here and in processes that are started."""
    monkeypatch.setenv(rust.VARIABLE, str(tmp_path / "nowhere"))
    rust.sources.cache_clear()
    rust.programs.cache_clear()
    yield
    rust.sources.cache_clear()
    rust.programs.cache_clear()
