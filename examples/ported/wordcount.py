"""How often each word is in a text. After Bytewax's `examples/wordcount.py`."""

import re

import pointstamp as ps

TEXT = """\
Round and round the rugged rock
the ragged rascal ran.
"""


def counts(scope: ps.Scope) -> ps.Stream[tuple[str, int]]:
    lines = scope.to_stream(TEXT.splitlines())
    words = lines.flat_map(lambda line: re.findall(r"[^\s!,.?\":;0-9]+", line.lower()))
    return words.aggregate(lambda word, _, n: n + 1, key=lambda word: word, default=0)


def main() -> None:
    for _, (word, n) in ps.testing.collect(counts):
        print(word, n)


if __name__ == "__main__":
    main()
