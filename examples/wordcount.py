"""Words counted per epoch, by an operator written by hand.

The operator collects the words of each epoch, and answers when it is told that no
more of them can come, from any worker. That is what `input.frontier` says, and
why it keeps a capability for each epoch until then: the right to send at it.

    python examples/wordcount.py [FILE [WORKERS]]      an epoch is a paragraph
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from pathlib import Path

import pointstamp as ps

Logic = Callable[[ps.Input, ps.Output], None]

TEXT = """\
to be or not to be
that is the question

to die to sleep
to sleep perchance to dream
"""


def word_count(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    held: dict[ps.Capability, list[str]] = {}

    def logic(input: ps.Input, output: ps.Output) -> None:
        for time, batch in input:
            held.setdefault(time.retain(), []).extend(batch)
        for cap in [c for c in held if not input.frontier.less_equal(c.time)]:
            with output.session(cap) as session:
                for word, n in collections.Counter(held.pop(cap)).items():
                    session.give((word, n))
            cap.drop()

    return logic


def count(worker: ps.Worker, paragraphs: list[str]) -> list[tuple[int, int, str]]:
    """(epoch, -n, word): a negative count, so that in order the most frequent come first."""
    counts: list[tuple[int, int, str]] = []
    with worker.dataflow("words") as scope:
        input, lines = scope.new_input("lines")
        words = lines.flat_map(str.split)
        counted = words.unary_frontier(ps.Exchange(lambda word: word), "WordCount", word_count)
        probe = counted.inspect_batch(
            lambda epoch, batch: counts.extend((epoch, -n, word) for word, n in batch)
        ).probe()
    for epoch, paragraph in enumerate(paragraphs):
        for line in paragraph.splitlines()[worker.index :: worker.peers]:
            input.send(line)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return counts


def main(file: str | None = None, workers: int | str = 2) -> None:
    text = TEXT if file is None else Path(file).read_text()
    parts = ps.execute(count, text.split("\n\n"), workers=int(workers))
    for epoch, minus_n, word in sorted(entry for part in parts for entry in part):
        print(epoch, -minus_n, word)


if __name__ == "__main__":
    main(*sys.argv[1:])
