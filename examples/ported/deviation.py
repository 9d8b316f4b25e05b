"""An aggregate of one's own, with deletions. After Pathway's tutorial on stateful reducers."""

from fractions import Fraction
from typing import Any

import pointstamp as ps

State = tuple[int, Fraction, Fraction]


def add(state: State, celsius: float, n: int) -> State:
    """How many values there are, their sum and the sum of their squares, `n` values more."""
    count, total, squares = state
    exact = Fraction(celsius)
    return count + n, total + n * exact, squares + n * exact**2


def variance(state: State) -> float:
    count, total, squares = state
    return float(squares / count - (total / count) ** 2)


def statistics(scope: ps.Scope, days: ps.Collection) -> Any:
    zero = (0, Fraction(0), Fraction(0))
    own = ps.linear_aggregate("celsius", zero=zero, add=add, emit=variance, type="double")
    return days.agg(mean=ps.avg("celsius"), variance=own)


def main() -> None:
    view = ps.View(statistics, days="day long, celsius double")
    view.insert("days", list(enumerate([28.0, 23.0, 24.5, 26.0, 28.5, 26.0])))
    print([(mean, round(variance, 4)) for (mean, variance), diff in view.advance() if diff > 0])
    view.delete("days", [(5, 26.0)])
    view.insert("days", [(5, 20.0)])
    print([(mean, round(variance, 4)) for (mean, variance), diff in view.advance() if diff > 0])


if __name__ == "__main__":
    main()
