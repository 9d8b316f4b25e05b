"""Least, mean and greatest of a file of measurements. After Bytewax's `examples/1brc.py`."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

import pointstamp as ps

SAMPLE = "Oslo;1.5\nRome;21.0\nOslo;-3.5\nLima;18.2\nRome;25.0\n"
READ = pyarrow.csv.ReadOptions(column_names=["station", "celsius"], block_size=1 << 20)
PARSE = pyarrow.csv.ParseOptions(delimiter=";")


def share(path: str | os.PathLike[str], index: int, peers: int) -> Iterator[pa.RecordBatch]:
    """The pieces of the file that a worker takes, of which each is a mebibyte."""
    with pyarrow.csv.open_csv(path, READ, PARSE) as pieces:
        for number, piece in enumerate(pieces):
            if number % peers == index:
                yield piece


def main(workers: int = 1) -> None:
    path = Path(tempfile.mkdtemp()) / "measurements.txt"
    path.write_text(SAMPLE)

    def stations(scope: ps.Scope) -> Any:
        rows = scope.batches_to_stream(share(path, scope.index, scope.peers))
        return rows.aggregate([("celsius", f) for f in ("min", "mean", "max")], key="station")

    for _, (station, least, average, most) in ps.testing.collect(stations, workers):
        print(f"{station}={least:.1f}/{average:.1f}/{most:.1f}")


if __name__ == "__main__":
    main()
