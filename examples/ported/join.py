"""Three streams joined by key, with what is missing. After Bytewax's `examples/join.py`."""

from typing import Any

import pointstamp as ps

NAMES = [("456", "ann"), ("123", "bob")]
EMAILS = [("123", "bob@mail"), ("456", "ann@mail")]
PHONES = [("123", "555 1")]


def joined(scope: ps.Scope) -> Any:
    names, emails, phones = map(scope.to_stream, (NAMES, EMAILS, PHONES))
    known = names.join(emails, lambda pair: pair[0])
    known = known.map(lambda pair: (pair[0][0], pair[0][1], pair[1][1]))
    all_of_it = known.join(phones, lambda record: record[0], how="left")
    return all_of_it.map(lambda pair: (*pair[0], pair[1] and pair[1][1]))


def main() -> None:
    for _, record in ps.testing.collect(joined):
        print(record)


if __name__ == "__main__":
    main()
