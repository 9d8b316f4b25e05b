"""Input files: made once per run, by a process of their own, and read by all cases.

They live in a folder that the driver makes and removes; cases find it by an
environment variable, which their workers inherit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

VARIABLE = "POINTSTAMP_BENCH_INPUTS"


def folder() -> Path:
    """Where the input files of this run are."""
    try:
        return Path(os.environ[VARIABLE])
    except KeyError:
        raise RuntimeError(
            f"{VARIABLE} does not say where the input files are; run `python -m benchmarks`"
        ) from None


def save(name: str, **columns: npt.NDArray[Any]) -> None:
    """Write named columns."""
    for column, values in columns.items():
        np.save(folder() / f"{name}.{column}.npy", values)


def load(name: str, column: str, index: int = 0, peers: int = 1) -> npt.NDArray[Any]:
    """A column, or the part of it that worker `index` of `peers` has, in memory of one's own."""
    whole = np.load(folder() / f"{name}.{column}.npy", mmap_mode="r")
    n = len(whole)
    return np.array(whole[n * index // peers : n * (index + 1) // peers])


def n_bytes(name: str) -> int:
    """The bytes of all columns."""
    return sum(np.load(path, mmap_mode="r").nbytes for path in folder().glob(f"{name}.*.npy"))


def raw(name: str, column: str) -> Path:
    """A file of nothing but the numbers of a column, 64 bits each, for programs in Rust."""
    path = folder() / f"{name}.{column}.raw"
    if not path.exists():
        values = load(name, column)
        if values.dtype.itemsize != 8:
            raise ValueError(f"column {column!r} of {name} is {values.dtype}, not of 64 bits")
        values.tofile(path)
    return path
