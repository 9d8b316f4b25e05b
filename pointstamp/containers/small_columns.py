"""Record batches of few records split by the hash of a key, without an object for each column.

What a split of a large batch is made of (a hash for each column, an order, a gather for each
column, a batch, slices of it) costs some microseconds each, whatever the number of records. A
batch of ten records is split by one function, which reads and makes batches as the structs of
Arrow's C data interface. It gives what the large split gives, record for record.

Columns of numbers, times and text can be split so, where none of the values is null.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.keys import column_names
from pointstamp.kernels.partition import split_small

SMALL_RECORDS = 1 << 8
"""Batches of up to so many are split here."""

_MAX_PLANS = 256
_OTHER, _SIGNED, _UNSIGNED, _REAL, _TEXT = range(5)


class _Plan(NamedTuple):
    """How batches of one schema are split by one key."""

    schema: pa.Schema
    kinds: npt.NDArray[np.uint8]
    widths: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.int32]
    fits: bool


class SmallSplits:
    """Splits small batches; knows the schemas that it has seen, by key."""

    def __init__(self) -> None:
        self._plans: dict[Any, _Plan] = {}
        self._sized: tuple[pa.Schema | None, int | None] = (None, None)

    def record_bytes(self, batch: pa.RecordBatch) -> int | None:
        """The bytes of a record of a batch without text; None where they differ.

        Those of a mask of nulls are not counted. Arrow's own count takes microseconds.
        """
        schema = batch.schema
        known, n_bytes = self._sized
        if known is not schema and (known is None or not known.equals(schema)):
            widths = [_form(kind)[1] for kind in schema.types]
            n_bytes = sum(widths) if all(widths) else None
            self._sized = (schema, n_bytes)
        return n_bytes

    def split(self, batch: pa.RecordBatch, key: Any, peers: int) -> list[pa.RecordBatch] | None:
        """The records of each worker; None for what has to be split as a large batch is.

        >>> batch = pa.record_batch({"k": [1, 2, 3]})
        >>> parts = SmallSplits().split(batch, "k", 2)
        >>> sum(part.num_rows for part in parts or [batch])  # nothing but this if not compiled
        3
        """
        if batch.num_rows > SMALL_RECORDS:
            return None
        if type(key) is not str:
            if key is not None and type(key) not in (list, tuple):
                return None
            key = key if key is None else tuple(key)
        plan = self._plans.get(key)
        if plan is None or not plan.schema.equals(batch.schema):
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[key] = _planned(batch.schema, key)
        if not plan.fits:
            return None
        return split_small(
            batch, pa.RecordBatch._import_from_c, plan.kinds, plan.widths, plan.keys, peers
        )


def _planned(schema: pa.Schema, key: Any) -> _Plan:
    forms = [_form(kind) for kind in schema.types]
    names = schema.names
    chosen = [names.index(name) for name in column_names(key, names, "a record batch")]
    if key is None:
        chosen = list(range(len(names)))
    kinds, widths = np.array(forms, np.uint8).reshape(-1, 2).T.copy()
    fits = bool(chosen) and all(w or k == _TEXT for k, w in forms) and all(kinds[chosen] != _OTHER)
    return _Plan(schema, kinds, widths, np.array(chosen, np.int32), fits)


def _form(kind: pa.DataType) -> tuple[int, int]:
    """What the values of a column are, and their bytes; 0 if they are not split here."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _TEXT, 0
    if pa.types.is_signed_integer(kind):
        return _SIGNED, kind.bit_width // 8
    if pa.types.is_unsigned_integer(kind):
        return _UNSIGNED, kind.bit_width // 8
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _REAL, kind.bit_width // 8
    if pa.types.is_temporal(kind) or pa.types.is_decimal128(kind):
        return _OTHER, kind.bit_width // 8
    return _OTHER, 0
