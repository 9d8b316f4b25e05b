"""Files of edges that Spark scans by itself: as DataFrames, and how much is in them."""

from __future__ import annotations

import re
from typing import Any

_COLUMNS = ("src", "dst")
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_PATTERN = re.compile(r"[*?\[\]{}\\]")


def scanned_edges(spark: Any, path: str) -> Any:
    """The DataFrame of Parquet files whose vertices are integers; None for other files."""
    if not path.endswith(".parquet") or _PATTERN.search(path):
        return None  # to Spark a pattern names several files, and to us one
    try:
        frame = spark.read.parquet(path)
        kinds = [kind for _, kind in frame.dtypes]
    except Exception:  # noqa: BLE001  (whatever it is: read here, it is said in our words)
        return None
    names = frame.columns
    ends = [names.index(name) for name in _COLUMNS] if set(_COLUMNS) <= set(names) else [0, 1]
    if len(names) < 2 or not {kinds[end] for end in ends} <= _INTEGERS:
        return None  # names, or an error in words that we choose
    # By position: to Spark a name may be a path into a column, or two columns'.
    frame = frame.toDF(*(f"column{number}" for number in range(len(names))))
    return frame.selectExpr(
        *(f"cast(column{end} as long) {name}" for end, name in zip(ends, _COLUMNS, strict=True))
    )


def count_edges(frame: Any) -> tuple[int, int]:
    """How many edges and vertices a DataFrame of edges has."""
    sources, targets = (frame.selectExpr(f"{name} as vertex") for name in _COLUMNS)
    return frame.count(), sources.union(targets).distinct().count()
