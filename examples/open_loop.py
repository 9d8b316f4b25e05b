"""Open loop: requests come by the clock, and what each has to wait for is counted.

A loop that sends the next request when the last one is answered never sees a queue: when
the computation is slow, it asks less. Here requests are due at fixed moments, whatever
is still under way, and a latency is from the moment at which a request was *due* until
its answer is complete on all workers. A source asks to be run again when the next
request is due, and the worker sleeps until then. All workers count from one moment, which one
of them chose and a `Sequencer` told to all.

    python examples/open_loop.py [REQUESTS [PER_SECOND [WORKERS]]]
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

import pointstamp as ps

Build = Callable[[ps.Capability, ps.OperatorInfo], Callable[[ps.Output], None]]


def agreed_start(worker: ps.Worker) -> float:
    """A moment, a little later than now; clocks of processes of one machine agree."""
    moments: ps.Sequencer[float] = ps.Sequencer(worker)
    if worker.index == 0:
        moments.push(time.monotonic() + 0.05)
    worker.step_while(lambda: not len(moments))
    moments.close()
    return next(moments)


def requests(start: float, n_requests: int, per_second: int) -> Build:
    """A source whose request `i` has time `i`, and is due `i / per_second` after the start."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[[ps.Output], None]:
        def logic(output: ps.Output) -> None:
            now = time.monotonic() - start
            while capability.time < n_requests and capability.time / per_second <= now:
                with output.session(capability) as session:
                    session.give(capability.time * info.peers + info.index)
                capability.downgrade(capability.time + 1)
            if capability.time < n_requests:
                info.activate_after(capability.time / per_second - now)
            else:
                capability.drop()

        return logic

    return build


def serve(
    worker: ps.Worker, n_requests: int, per_second: int
) -> tuple[list[float], list[tuple[int, int]]]:
    """Latencies by request, in seconds; and (time, number) of the answers given here."""
    answers: list[tuple[int, int]] = []
    latencies: list[float] = []
    start = agreed_start(worker)
    with worker.dataflow("open loop") as scope:
        stream = scope.source(requests(start, n_requests, per_second), "Requests")
        counts = stream.exchange().count()
        probe = counts.inspect_batch(
            lambda at, batch: answers.extend((at, n) for n in batch)
        ).probe()
    while len(latencies) < n_requests:
        worker.step_or_park()
        now = time.monotonic() - start
        while len(latencies) < n_requests and not probe.less_equal(len(latencies)):
            latencies.append(now - len(latencies) / per_second)
    return latencies, answers


def main(n_requests: int = 2000, per_second: int = 1000, workers: int = 2) -> None:
    latencies, _ = ps.execute(serve, n_requests, per_second, workers=workers)[0]
    # A bar for each power of two: the latencies below it, and not below half of it.
    bars = Counter(2 ** int(latency * 1e6).bit_length() for latency in latencies)
    for bound in sorted(bars):
        share = 40 * bars[bound] // max(bars.values())
        print(f"< {bound:>8} us {bars[bound]:>6} {'#' * share}")
    middle, late = (sorted(latencies)[int(part * len(latencies))] for part in (0.5, 0.99))
    print(f"half of {n_requests} took below {middle * 1e6:.0f} us, 99 % below {late * 1e6:.0f} us")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
