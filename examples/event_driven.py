"""Many dataflows, of which nearly all are idle: what has nothing to do costs nothing.

A worker has a list of dataflows, each a chain of operators, and an event goes into one of
them at a time. The worker visits what the event reaches and nothing else, so that an event
takes as long beside a hundred idle dataflows as without them. (Where all of them have
events in turn, it takes longer: what it reaches has left the processor's cache meanwhile.)

    python examples/event_driven.py [DATAFLOWS [OPERATORS [EVENTS [WORKERS]]]]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

import pointstamp as ps


def chain(worker: ps.Worker, n_operators: int, seen: list[int]) -> Callable[[int, list[int]], None]:
    """Build a dataflow; what sends it events of a time, and waits until they are through."""
    with worker.dataflow("chain") as scope:
        input, stream = scope.new_input()
        for _ in range(n_operators):
            stream = stream.map(lambda x: x + 1)
        probe = stream.exchange().inspect(seen.append).probe()

    def send(time: int, events: list[int]) -> None:
        input.send_batch(events)
        input.advance_to(time + 1)
        worker.step_while(lambda: probe.less_equal(time))

    return send


def drive(
    worker: ps.Worker, n_dataflows: int, n_busy: int, n_operators: int, n_events: int
) -> tuple[float, list[list[int]]]:
    """Seconds for each event; and what came out here of each dataflow."""
    seen: list[list[int]] = [[] for _ in range(n_dataflows)]
    chains = [chain(worker, n_operators, its_seen) for its_seen in seen]
    ps.Barrier(worker).wait()
    began = monotonic()
    for event in range(n_events):
        is_mine = event % worker.peers == worker.index
        chains[event % n_busy](event, [event] if is_mine else [])
    return (monotonic() - began) / n_events, seen


def main(
    n_dataflows: int = 100, n_operators: int = 5, n_events: int = 1000, workers: int = 2
) -> None:
    for n, n_busy in ((1, 1), (n_dataflows, 1), (n_dataflows, n_dataflows)):
        parts = ps.execute(drive, n, n_busy, n_operators, n_events, workers=workers)
        slowest = max(seconds for seconds, _ in parts)
        print(f"dataflows: {n}, busy: {n_busy}, an event takes {slowest * 1e6:.0f} us")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
