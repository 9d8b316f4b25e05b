"""What type each operator gives that has its work done elsewhere; see `streams.py`."""

from __future__ import annotations

from typing import Any, assert_type

import pointstamp as ps


def elsewhere(texts: ps.Stream[str]) -> None:
    assert_type(texts.command(["grep", "x"], ok=(0, 1)), ps.Stream[Any])
    assert_type(texts.command(["cat"], form="bytes", marker="#"), ps.Stream[Any])
    assert_type(texts.spark(lambda frame: frame, schema="word string"), ps.Stream[Any])
    texts.command(["cat"], ok=0)  # type: ignore[arg-type]
