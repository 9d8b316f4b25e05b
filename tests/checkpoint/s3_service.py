"""A service whose checkpoint is in an object store, and the client that feeds it.

`main` is a program that may be killed at any request: what was acknowledged it says, epoch by
epoch, on standard output.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import pointstamp as ps
from pointstamp.errors import CheckpointError

NUMBERS = {"k": pa.int64(), "v": pa.int64()}


def add(key: int, value: int, state: int) -> Any:
    return state + value, [(key, state + value)]


def build(scope: Any, n: Any) -> Any:
    """Running sums by key."""
    rows = n.map_batches(lambda b: list(zip(*(c.to_pylist() for c in b.columns), strict=True)))
    return rows.state_machine(add, default=0).map_batches(
        lambda batch: pa.RecordBatch.from_pylist(
            [{"k": k, "v": v} for k, v in batch], pa.schema(NUMBERS)
        )
    )


class NotedBuild:
    """The same, and says in a folder which process has each worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __call__(self, scope: Any, n: Any) -> Any:
        (Path(self._folder) / f"pid-{scope.index}").write_text(str(os.getpid()))
        return build(scope, n)


def serve(checkpoint: Any, workers: int = 2, every: int | None = 2) -> ps.Service:
    return ps.serve(build, workers, threads=True, **_options(checkpoint, every))


def serve_by_processes(checkpoint: Any, folder: Path, every: int | None = 2) -> ps.Service:
    """On two; `folder` has files `pid-0` and `pid-1`."""
    restart = ps.RestartPolicy(delay_s=0.0)
    return ps.serve(NotedBuild(folder), 2, restart=restart, **_options(checkpoint, every))


def _options(checkpoint: Any, every: int | None) -> dict[str, Any]:
    return {
        "inputs": {"n": NUMBERS},
        "outputs": {"n": NUMBERS},
        "checkpoint": checkpoint,
        "snapshot_every": every,
    }


def sums(upto: int) -> list[dict[str, int]]:
    """What comes out of the epochs of `feed`."""
    return [{"k": epoch % 2, "v": sum(range(epoch % 2, epoch + 1, 2))} for epoch in range(upto + 1)]


def found(service: ps.Service, upto: int) -> list[Any]:
    return service.output("n").collect(upto=upto).to_pylist()


def feed(service: ps.Service, upto: int, *, says: bool = False) -> None:
    """Send what is missing, and repeat a commit that the store does not answer."""
    n = service.input("n")
    for epoch in range(n.time or 0, upto):
        _until_answered(lambda: n.send([{"k": epoch % 2, "v": epoch}]))  # noqa: B023
        _until_answered(lambda: n.advance_to(epoch + 1))  # noqa: B023
        if says:
            print(epoch, flush=True)


def _until_answered(request: Any) -> None:
    while True:
        try:
            request()
            return
        except CheckpointError as error:
            if "AWS Error" not in str(error):
                raise


def main(uri: str, workers: int, upto: int) -> None:
    with serve(uri, workers) as service:
        feed(service, upto, says=True)
        assert found(service, upto - 1) == sums(upto - 1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
