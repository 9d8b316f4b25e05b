"""Nights of a job that keeps collections up to date, for a test that ends them by kill -9.

A night is a run of `maintain` with a name of its own. What it gives is written down, whole or not
at all; a night of which nothing is written down is had again, under the same name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pointstamp.spark
from tests.service.collection_lives import SCHEMAS, build, changes_of
from tests.service.lives import replaced

DIFF = "n int"


def night(spark: Any, folder: Path, number: int) -> None:
    """The changes of an epoch, taken in by a job; what came of them."""
    changes = {
        name: spark.createDataFrame(
            [(*row, n) for row, n in changes_of(number)[name]],
            f"{schema.replace('?', '')}, {DIFF}",
        )
        for name, schema in SCHEMAS.items()
    }
    feeds = pointstamp.spark.maintain(
        build,
        spark,
        changes,
        form="diff",
        diff="n",
        checkpoint=folder / "checkpoint",
        run=f"night {number}",
        workers=1 + number % 2,
        collections=SCHEMAS,
    )
    found = {
        name: [(list(row[:-3]), row[-3], row[-2]) for row in feed.collect()]
        for name, feed in feeds.items()
    }
    replaced(folder / f"night-{number}", json.dumps(found))


def main(folder: str, n_nights: str) -> None:
    """Have the nights that are missing."""
    spark = pointstamp.spark.session("local[2]")
    for number in range(int(n_nights)):
        if not (Path(folder) / f"night-{number}").exists():
            print(f"night {number}", flush=True)
            night(spark, Path(folder), number)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
