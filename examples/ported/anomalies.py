"""Values far from the ten before them. After Bytewax's `examples/anomaly_detector.py`."""

from statistics import mean, pstdev
from typing import Any

import pointstamp as ps

VALUES = [4, 5, 6, 5, 4, 6, 5, 30, 5, 4, 6, 5]
Seen = tuple[float, ...]


def far(metric: str, value: float, before: Seen) -> tuple[Seen, list[Any]]:
    """The last ten values, and the value with how many standard deviations it is away."""
    sigma = pstdev(before) if before else 0.0
    away = abs(value - mean(before)) / sigma if sigma else 0.0
    return (*before[-9:], value), [(metric, value, round(away, 1))]


def anomalies(scope: ps.Scope) -> Any:
    values = scope.to_stream(enumerate(VALUES)).delay(lambda at_value, time: at_value[0])
    keyed = values.map(lambda at_value: ("qps", at_value[1]))
    return keyed.state_machine(far, default=()).filter(lambda found: found[2] > 2)


def main() -> None:
    for second, (metric, value, away) in ps.testing.collect(anomalies):
        print(f"{second} s: {metric} is {value}, {away} standard deviations away")


if __name__ == "__main__":
    main()
