"""Run a small dataflow and get what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.containers import kind_of
from pointstamp.errors import BuildError
from pointstamp.operators.building import name_of, takes_names
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker


def collect(
    build: Callable[[Scope], Stream[Any]],
    workers: int = 1,
    *,
    threads: bool = True,
    seed: int | None = None,
) -> list[tuple[Any, Any]]:
    """All (time, record) of the stream that `build(scope)` returns, in order.

    Records of all workers, ordered by time and then by the record (by its text
    where records cannot be ordered), so that the result does not depend on the
    number of workers. With a `seed` the workers are simulated, in an order drawn
    from it.

    >>> collect(lambda scope: scope.to_stream([2, 1]))
    [(0, 1), (0, 2)]
    >>> collect(lambda scope: scope.to_stream([scope.index]), workers=2, seed=7)
    [(0, 0), (0, 1)]
    """
    takes_names(build, [])

    def main(worker: Worker) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = []

        def note(time: Any, batch: Any) -> None:
            found.extend((time, record) for record in kind_of(batch).records(batch))

        with worker.dataflow() as scope:
            stream: Any = build(scope)
            if not isinstance(stream, Stream):
                # Here and not above: most tests of streams have no collection.
                from pointstamp.collections.collection import Collection

                hint = "; ps.View(...).snapshot() has the rows of one"
                raise BuildError(
                    f"{name_of(build)} should return a stream, and returned {stream!r:.200}"
                    + hint * isinstance(stream, Collection)
                )
            stream.inspect_batch(note)
        worker.run()
        return found

    records = [item for part in _run(main, workers, threads, seed) for item in part]
    try:
        return sorted(records)
    except TypeError:
        return sorted(records, key=lambda item: (repr(item[0]), repr(item[1])))


def _run(
    main: Callable[[Worker], list[Any]], workers: int, threads: bool, seed: int | None
) -> list[list[Any]]:
    if seed is None:
        return execute(main, workers=workers, threads=threads)
    # Here and not above: it is of use to tests alone, and takes its time to import.
    from pointstamp.runtime.simulate import simulate

    return simulate(main, workers=workers, seed=seed)
