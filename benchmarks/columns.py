"""Columns of random numbers for the exchanges, the same as `race` in Rust makes.

So both sides send the same records, and as both hash alike, to the same workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import hash_words

N_COLUMNS = 4
"""Batches are these in turn."""

_SEED, _STEP = 88172645463325252, 0x9E3779B97F4A7C15


def columns(index: int, n_records: int) -> list[npt.NDArray[Any]]:
    """Those of worker `index`: uint64, and below 2^63, so that adding one does not overflow."""
    n = N_COLUMNS * n_records
    words = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_STEP)
    words += np.uint64(_SEED ^ ((index + 1) << 32))
    return np.split(hash_words(words) >> np.uint64(1), N_COLUMNS)


def row_batches(index: int, n_records: int) -> list[list[int]]:
    """The same as Python's integers."""
    return [column.tolist() for column in columns(index, n_records)]
