"""Kinds are found by type and by name; what is not known is refused with advice."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pointstamp.containers import decode, encode, kind_named, kind_of, register, registry
from pointstamp.containers.rows import RowsKind
from pointstamp.dataflow.spillable import OnDisk
from pointstamp.errors import ContainerError, SerializationError


class DequeKind(RowsKind):
    """A user's own kind."""

    name = "deque"

    def decode(self, buffers):
        return deque(super().decode(buffers))


@pytest.fixture
def scratch(monkeypatch) -> Iterator[None]:
    """Registrations that end with the test."""
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    monkeypatch.setattr(registry, "_names", dict(registry._names))


@pytest.mark.new_interpreters
def test_arrow_is_imported_with_the_first_record_batch_only():
    code = (
        "import sys; from pointstamp.containers import *;"
        "kind_of([]); kind_of(Arrays(a=[1])); decode(encode([1], 0));"
        "print([name for name in ('pyarrow', 'pandas') if name in sys.modules]);"
        "import pyarrow as pa; print(kind_of(pa.record_batch({'a': [1]})).name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "columns"]


def test_a_message_of_columns_can_be_the_first_that_a_process_sees():
    message = b"".join(encode(pa.record_batch({"a": [1]}), 0))
    code = (
        "import sys; from pointstamp.containers import decode;"
        "print(decode([sys.stdin.buffer.read()])[1].to_pydict())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=message, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"{'a': [1]}"


def test_a_subclass_has_the_kind_of_its_base():
    class Records(list):
        pass

    assert kind_of(Records()) is kind_of([])


@pytest.mark.usefixtures("scratch")
def test_a_registered_kind_is_found_and_travels():
    register(deque, DequeKind())
    register(deque, DequeKind())
    assert kind_of(deque([1])).name == "deque"
    assert decode(encode(deque([1, 2]), "t")) == ("t", deque([1, 2]))


@pytest.mark.usefixtures("scratch")
def test_two_kinds_for_one_type_or_name_are_refused():
    register(deque, DequeKind())
    with pytest.raises(ContainerError, match="'rows'"):
        register(deque, RowsKind())

    class Other(RowsKind):
        name = "deque"

    with pytest.raises(ContainerError, match="'deque'"):
        register(tuple, Other())


@pytest.mark.usefixtures("scratch")
def test_what_is_no_type_and_a_kind_without_a_name_are_refused():
    class Nameless(RowsKind):
        name = None

    for container, kind, message in [
        ("deque", DequeKind(), "'deque', which is no type"),
        (DequeKind(), deque, "which is no type"),
        (deque, Nameless(), "for deque: give its class a name"),
    ]:
        with pytest.raises(ContainerError, match=message):
            register(container, kind)
    with pytest.raises(ContainerError, match="list, RecordBatch"):
        kind_of(deque())


def test_a_message_of_a_kind_that_is_not_known_says_what_to_do(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_kinds", {**registry._kinds, deque: DequeKind()})
        message = encode(deque([1]), 0)
    with pytest.raises(SerializationError, match=r"'deque'.*register"):
        decode(message)
    with pytest.raises(ContainerError, match=r"'deque'.*'rows'"):
        kind_named("deque")


@pytest.mark.parametrize(
    ("batch", "advice"),
    [
        (pa.table({"a": [1]}), "to_batches"),
        (pd.DataFrame({"a": [1]}), "to_batches"),
        (np.arange(3), "record_batch"),
        (pa.array([3]), "record_batch"),
        ({"a": [1]}, "record_batch"),
        ((1, 2), "list"),
        (range(3), "list"),
        ("text", "register"),
        (7, "list, RecordBatch"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_is_no_container_is_refused_with_advice(batch, advice):
    with pytest.raises(ContainerError, match=advice) as caught:
        kind_of(batch)
    assert "list, RecordBatch" in str(caught.value)
    assert "Arrays" not in str(caught.value)
    assert OnDisk.__name__ not in str(caught.value)  # which no program has
    assert type(batch).__name__ in str(caught.value)
