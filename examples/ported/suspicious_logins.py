"""Addresses with five failed logins in a minute. After Pathway's template of that name."""

from typing import Any

import pointstamp as ps

LOGINS = [  # second, address, whether it succeeded
    *((second, "50.37.169.241", False) for second in (11, 21, 30, 43, 58)),
    *((second, "111.50.168.120", False) for second in (50, 55, 61, 65)),
    (70, "50.37.169.241", True),
]


def suspicious(scope: ps.Scope) -> Any:
    failed = scope.to_stream(LOGINS).filter(lambda login: not login[2])
    minutes, _ = failed.count_window(
        ps.Tumbling(60), time=lambda login: login[0], key=lambda login: login[1]
    )
    return minutes.filter(lambda minute: minute.value >= 5)


def main() -> None:
    for _, (address, start, end, n) in ps.testing.collect(suspicious):
        print(f"{address}: {n} failures from second {start} to {end}")


if __name__ == "__main__":
    main()
