"""A motif in a graph from a file, in your own dataflow.

Worker 0 reads the edges, batches of columns that stay Arrow all the way; `motifs`
spreads them over the workers and finds the pattern; what comes out is a stream of
batches again, and here the filter keeps some of it.

    python examples/motifs_of_a_file.py [EDGES [PATTERN [WORKERS]]]
"""

from __future__ import annotations

import io
import sys

import pyarrow.compute as pc

import pointstamp as ps
from pointstamp.formats.edge_files import read_edges
from pointstamp.graph import motifs

TOY = b"""\
# who follows whom
1 2
2 1
2 3
3 1
1 3
3 4
4 1
"""
TWO_WAYS = "(a)-[]->(b); (b)-[]->(a)"


def find(worker: ps.Worker, source: str | bytes, pattern: str) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    with worker.dataflow("motifs") as scope:
        input, edges = scope.new_input("edges")
        matches = motifs(edges, pattern).filter(pc.field("a") < pc.field("b"))
        matches.inspect_batch(lambda time, batch: found.extend(batch.to_pylist()))
    if worker.index == 0:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        for batch in read_edges(file).batches():
            input.send_batch(batch)
    input.close()
    worker.run()
    return found


def main(source: str | bytes = TOY, pattern: str = TWO_WAYS, workers: int | str = 2) -> None:
    parts = ps.execute(find, source, pattern, workers=int(workers))
    matches = sorted(tuple(match.values()) for part in parts for match in part)
    print(f"{len(matches)} matches of {pattern} with a < b, the first of them {matches[:3]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
