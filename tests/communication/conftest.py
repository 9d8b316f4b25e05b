"""What checks of communicators send between threads of the tests' own process."""

from __future__ import annotations

import pytest

from pointstamp.testing import communicators


@pytest.fixture(autouse=True)
def large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than sockets and rings hold; processes send each other fifty million bytes."""
    monkeypatch.setattr(communicators, "N_BIG_BYTES", 1 << 24)
