"""What a process that was killed while it started Spark has left goes with the next start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from pointstamp.formats.owned_folder import LOCK
from pointstamp.spark import installation, java
from pointstamp.spark.session import _log_settings

STARTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "pointstamp-java-": java.for_spark,
    "pointstamp-log-": _log_settings,
    "pointstamp-install-": lambda: installation._folder(object()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("prefix", STARTS)
def test_a_start_removes_what_a_killed_one_has_left(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = java.Java(Path("/usr"), 25, has_module=False)
    monkeypatch.setattr(java, "find_java", lambda: found)
    monkeypatch.setattr(installation, "context_of", lambda spark: None)
    left = tmp_path / f"{prefix}left"
    left.mkdir()
    (left / LOCK).touch()
    with STARTS[prefix]():
        (folder,) = tmp_path.iterdir()
        assert folder != left
        assert folder.name.startswith(prefix)
        assert [path for path in folder.iterdir() if path.name != LOCK] or "install" in prefix
    assert list(tmp_path.iterdir()) == []
