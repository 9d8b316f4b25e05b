"""A report that is kept up to date: sales join shops, and are summed up by city.

Each epoch some sales come and some are taken back. Of the report only those rows come and go that
are others now; at the end it is what it would be if all were computed from scratch.

    python examples/sales_report.py [SALES [EPOCHS]]
"""

from __future__ import annotations

import random
import sys
from typing import Any

import pointstamp as ps
from pointstamp import col

CITIES = ["Oslo", "Rome", "Lima", "Pune"]


def report(scope: ps.Scope, sales: ps.Collection, shops: ps.Collection) -> Any:
    """By city: how many sales above ten, of how much together, and the largest."""
    big = sales.filter(col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"), largest=ps.max("cents"))


def main(sales: int | str = 1_000, epochs: int | str = 5) -> None:
    """Print what changes in each epoch, and the report at the end."""
    choose = random.Random(1)
    known: list[tuple[int, int]] = []
    with ps.View(report, sales="shop long, cents long", shops="shop long, city string") as view:
        view.insert("shops", [(shop, CITIES[shop % len(CITIES)]) for shop in range(40)])
        for epoch in range(int(epochs)):
            come = [(choose.randrange(40), choose.randrange(5_000)) for _ in range(int(sales))]
            gone = choose.sample(known, len(known) // 10)
            for sale in gone:
                known.remove(sale)
            known += come
            view.insert("sales", come)
            view.delete("sales", gone)
            print(f"epoch {epoch}: {len(come)} sales come, {len(gone)} go,", end=" ")
            print(f"{len(view.advance())} rows change")
        for city, n, cents, largest in view.snapshot():
            print(f"{city}: {n} sales of {cents / 100:.2f}, the largest {largest / 100:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
