"""Lives of a service whose result is merged into a table, for a test that ends them by kill -9.

The epochs are numbered, and what they change follows from the number; a life goes on with the
first one that was not committed. The table is a file, and outlasts the program.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pointstamp as ps
import pointstamp.spark
from tests.service.lives import replaced
from tests.spark.merge_catalog import add_merge_catalog

SCHEMA = "city string?, cents long"
CITIES = ["Rome", "Oslo", "Bern", "Lima", None]
PAUSE_MS = 150
"""So long a commit of the table takes before it, and after it: to be killed there."""
AHEAD = 3
"""The table is waited for after so many epochs, and after the first time it is said to go on."""

Row = tuple[str | None, int]


def report(scope: Any, sales: Any) -> Any:
    return sales.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))


def changes_of(number: int) -> list[tuple[Row, int]]:
    """What an epoch changes: sales that come, and later go, so that rows of the table go, too."""
    changes: list[tuple[Row, int]] = []
    for epoch, diff in ((number, 1), (number - 3, -1)):
        rolled = random.Random(epoch)
        changes += [
            ((rolled.choice(CITIES), rolled.randint(1, 99)), diff)
            for _ in range(3 if epoch >= 0 else 0)
        ]
    return changes


def expected(n_epochs: int) -> list[list[Any]]:
    """The rows of the table in the end, recomputed."""
    sales: Counter[Row] = Counter()
    for number in range(n_epochs):
        for row, diff in changes_of(number):
            sales[row] += diff
    found: dict[str | None, list[int]] = {}
    for (city, cents), n in sales.items():
        if n:
            of_city = found.setdefault(city, [0, 0])
            of_city[0] += n
            of_city[1] += n * cents
    return sorted([[city, *sums] for city, sums in found.items()], key=repr)


def live(spark: Any, folder: Path, n_epochs: int) -> None:
    """Have the epochs that are missing, and all in the table; then write down what that has."""
    catalog = add_merge_catalog(
        spark, folder / "merge.jar", "kept", folder=folder / "tables", pause=PAUSE_MS
    )
    table = f"{catalog}.report"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} (city STRING, n BIGINT, cents BIGINT)")
    with pointstamp.spark.serve(
        report,
        spark,
        2,
        collections={"sales": SCHEMA},
        checkpoint=folder / "checkpoint",
        snapshot_every=3,
    ) as service:
        query = service.output("result").merge_into(table, key="city")
        is_said = False
        for number in range(service.input("sales").time, n_epochs):
            service.input("sales").update(changes_of(number))
            assert service.advance() == number
            service.probe.wait(number)
            if number % AHEAD == 0:
                query.processAllAvailable()
                if not is_said:
                    print("merging", flush=True)
                    is_said = True
        query.processAllAvailable()
        found = sorted((list(row) for row in spark.table(table).collect()), key=repr)
        replaced(folder / "last", json.dumps(found))


def main(folder: str, n_epochs: str) -> None:
    """Have all epochs, as far as the program lives."""
    spark = pointstamp.spark.session("local[4]")
    live(spark, Path(folder), int(n_epochs))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
