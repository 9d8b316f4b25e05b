"""Each event with the first price after it. After Pathway's tutorial on `asof_join`."""

from datetime import date
from typing import Any

import pointstamp as ps
from pointstamp import col

EVENTS = [
    ("AAA", "a new board", date(2023, 1, 3)),
    ("AAA", "a recall", date(2023, 1, 7)),
    ("BBB", "a merger", date(2023, 1, 4)),
]
PRICES = [
    ("AAA", date(2023, 1, 3), 100.0, 101.0),
    ("AAA", date(2023, 1, 9), 101.0, 95.0),
    ("BBB", date(2023, 1, 5), 40.0, 44.0),
]


def impact(scope: ps.Scope, events: ps.Collection, prices: ps.Collection) -> Any:
    later = events.join(prices, on="symbol").filter(col("day") >= col("at"))
    first = later.group_by("symbol", "event", "at").agg(
        day=ps.min("day"), open=ps.min_by("open", "day"), close=ps.min_by("close", "day")
    )
    change = 100 * (col("close") - col("open")) / col("open")
    return first.with_columns(change=change).filter(col("change").abs() >= 3)


def main() -> None:
    view = ps.View(
        impact,
        events="symbol string, event string, at date",
        prices="symbol string, day date, open double, close double",
    )
    view.insert("events", EVENTS)
    view.insert("prices", PRICES)
    view.advance()
    for symbol, event, at, day, _, _, change in view.snapshot():
        print(f"{symbol}: {event} on {at}, {change:+.1f} % on {day}")


if __name__ == "__main__":
    main()
