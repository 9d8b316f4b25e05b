"""Small batches of columns as blocks: split by the hash of a key, and put together.

A block is one piece of bytes: the number of records in 8 bytes, 8 of zero, and the values of
each column, one column after the other, each from a multiple of 16 on, zeros in between. What
NumPy takes for ten records (an object for a column, a call for a step) is some hundred times
what their values take; so these loops go from the memory of some columns to that of others.

Where batches are large, `partition` and `permute` are as quick, and write each column once.

Knows nothing of the names and types of columns: a column is a width.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import combine_columns, hash_column
from pointstamp.kernels.partition import order_by_peer

MAX_RECORDS = 1 << 10
"""Of a batch that `split_columns` splits."""

MAX_COLUMNS = 64
MAX_PARTS = 64
"""How many it can make of one."""

OTHER, SIGNED, UNSIGNED, REAL = range(4)
"""What the values of a column are: no numbers, integers, those without a sign, floats."""

HEAD = 16
"""The bytes before the first column; and each begins at a multiple of it."""

_LETTERS = {SIGNED: "i", UNSIGNED: "u", REAL: "f"}

Rows = npt.NDArray[np.uint8]


@kernel("small_loops")
def split_columns(
    source: list[Any] | bytes, kinds: bytes, widths: bytes, keys: bytes, n_parts: int
) -> list[bytes]:
    """The records of each part as a block, by the hash of their key, in their order.

    source : columns, [n] each and n at most `MAX_RECORDS`, in any stride; or a block of these
    kinds, widths : what the values of each column are (as `OTHER` to `REAL`), and their bytes
    keys : the numbers of the columns whose hash is the key's, none of them `OTHER`
    returns `n_parts` blocks, at most `MAX_PARTS`

    Raises `ValueError` for a source of another form, and for more than it can do.
    """
    rows = _rows(source, widths)
    n = len(rows[0])
    if len(kinds) != len(widths):
        raise ValueError(f"{len(widths)} columns, of {len(kinds)} kinds")
    if not (n <= MAX_RECORDS and len(widths) <= MAX_COLUMNS and 0 < n_parts <= MAX_PARTS):
        raise ValueError(f"{n} records of {len(widths)} columns are not split so in {n_parts}")
    parts = [hash_column(_numbers(rows[k], kinds[k])) for k in keys]
    hashes = combine_columns(parts) if parts else np.zeros(n, np.uint64)
    order, starts = order_by_peer(hashes, n_parts)
    return [
        _block([column[order[start:stop]] for column in rows])
        for start, stop in itertools.pairwise(starts)
    ]


@kernel("small_loops")
def pack_columns(sources: list[Any], widths: bytes) -> bytes:
    """One block of the records of several batches, in order.

    sources : each a list of columns, [n] of these widths, or a block of such columns

    Raises `ValueError` for a source of another form, and for more than `MAX_COLUMNS`.
    """
    if len(widths) > MAX_COLUMNS:
        raise ValueError(f"{len(widths)} columns are not packed so")
    rows = [_rows(source, widths) for source in sources]
    return _block([np.concatenate(column) for column in zip(*rows, strict=True)])


def _rows(source: list[Any] | bytes, widths: bytes) -> list[Rows]:
    """The bytes of each value of each column, uint8[n, width]."""
    if not isinstance(source, bytes):
        if len(source) != len(widths) or not widths:
            raise ValueError(f"{len(source)} columns, of {len(widths)} widths")
        n = len(source[0])
        for number, (column, width) in enumerate(zip(source, widths, strict=True)):
            if column.shape != (n,) or column.itemsize != width:
                raise ValueError(f"column {number} is not {n} values of {width} bytes each")
        return [
            np.ascontiguousarray(column).view(np.uint8).reshape(n, width)
            for column, width in zip(source, widths, strict=True)
        ]
    n = int.from_bytes(source[:8], "little", signed=True)
    size = HEAD + sum(padded(n * width) for width in widths)
    if len(source) < HEAD or not 0 <= n <= len(source) or len(source) != size:
        raise ValueError(
            f"a block of {len(source)} bytes is none of {n} records of {list(widths)} bytes"
        )
    rows = []
    at = HEAD
    for width in widths:
        octets = np.frombuffer(source, np.uint8, n * width, at) if n else np.empty(0, np.uint8)
        rows.append(octets.reshape(n, width))
        at += padded(n * width)
    return rows


def padded(n_bytes: int) -> int:
    """The bytes from the beginning of a column to the beginning of the next.

    >>> padded(8), padded(32)
    (16, 32)
    """
    return n_bytes + -n_bytes % HEAD


def _numbers(rows: Rows, kind: int) -> npt.NDArray[Any]:
    width = rows.shape[1]
    return np.ascontiguousarray(rows).reshape(-1).view(f"{_LETTERS[kind]}{width}")


def _block(rows: list[Rows]) -> bytes:
    pieces = [len(rows[0]).to_bytes(HEAD, "little")]
    for column in rows:
        data = column.tobytes()
        pieces += [data, bytes(padded(len(data)) - len(data))]
    return b"".join(pieces)
