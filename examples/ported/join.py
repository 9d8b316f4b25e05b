"""Three streams joined by key, with what is missing. After Bytewax's `examples/join.py`."""

from typing import Any

import pointstamp as ps

NAMES = [("456", "ann"), ("123", "bob")]
EMAILS = [("123", "bob@mail"), ("456", "ann@mail")]
PHONES = [("123", "555 1")]


def joined(scope: ps.Scope) -> Any:
    names, emails, phones = map(scope.to_stream, (NAMES, EMAILS, PHONES))
    pairs = names.join(emails, lambda pair: pair[0])
    known = pairs.map(lambda pair: (*pair[0], pair[1][1]))
    called = known.join(phones, lambda record: record[0], lambda pair: pair[0], how="left")
    return called.map(lambda pair: (*pair[0], pair[1] and pair[1][1]))


def main() -> None:
    for _, record in ps.testing.collect(joined):
        print(record)


if __name__ == "__main__":
    main()
