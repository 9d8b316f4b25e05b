"""`simulate`: all workers in one thread, in an order that a seed decides.

Each worker runs in a greenlet, on a communicator that gives way whenever the
worker begins a step or waits. The driver then decides what happens next: which
worker goes on, or which messages arrive. So the code that runs is the code that
runs anywhere, it knows nothing of being simulated, and what happened once happens
again, given the seed.

Rules
-----
1. Only the driver switches to a worker, and a worker only back to the driver.
2. Between two decisions every worker is between two of its steps, so that
   an observer sees no half-done work.
3. A computation that cannot go on is an error, at once: nothing is runnable and
   nothing is under way.
4. However a run ends, every greenlet has ended with it.

The garbage collector is off while a simulation runs: what it would find, and drop
the capabilities of, depends on what the process did before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

from pointstamp.communication.communicator import Channel
from pointstamp.communication.failure import Failure, failure, first_cause
from pointstamp.communication.simulated import SimulatedCommunicator, SimulatedNetwork
from pointstamp.communication.target import (
    check_main,
    check_result,
    check_workers,
    run_target,
)
from pointstamp.dataflow.collector import collector_off
from pointstamp.dataflow.logging_protocol import LoggerFactory
from pointstamp.errors import MissingExtraError, StalledError
from pointstamp.runtime.run_options import check_options, machine_of_each
from pointstamp.runtime.run_worker import run_worker
from pointstamp.runtime.schedule import Decision, Schedule
from pointstamp.runtime.worker import Worker

try:
    from greenlet import getcurrent, greenlet
except ImportError as cause:
    raise MissingExtraError(
        "simulate runs workers as greenlets, and greenlet is not installed here: "
        "pip install 'pointstamp[simulate]'"
    ) from cause

Result = TypeVar("Result")
Args = TypeVarTuple("Args")

MAX_DECISIONS = 20_000_000
"""After so many, a run counts as one that never ends."""

MAX_OUTSTANDING = 20
"""How many pointstamps of each worker an error lists."""

STEP_S = 1e-3
"""What a worker's clock advances by in a step, so that waiting by stepping comes to an end."""

HERE = Path(__file__).resolve().parent
OURS = (str(HERE), str(HERE.parent / "communication"))
"""Where a worker's waiting is written; what it waits for stands in the caller of that."""


def simulate(
    main: Callable[[Worker, *Args], Result],
    *args: *Args,
    workers: int,
    seed: int = 0,
    crash: bool = False,
    replay: Sequence[Decision] = (),
    progress: str = "demand",
    machines: int | Sequence[int] | None = None,
    log: LoggerFactory | None = None,
    memory_limit: int | str | None = None,
    spill_directory: str | PathLike[str] | None = None,
) -> list[Result]:
    """Run `main(worker, *args)` on several simulated workers, in this thread.

    Like `execute`, but which worker goes on and which message arrives is decided
    by draws from `seed`: some workers and links are far slower than others, and
    messages of different links overtake each other. The same seed gives the same
    run. Use it to test that a dataflow does not depend on timing.

    Parameters
    ----------
    main : callable
        Gets a `Worker`, and `args`. It must not wait for anything but its worker.
    workers : int
        How many.
    seed : int
        What the decisions are drawn from.
    crash : bool
        Let some worker die at some moment, if the run lasts that long.
    replay : sequence of decisions
        The first decisions, as a `Simulation` recorded them.
    progress : "demand" or "eager"
        As for `execute`.
    machines : int or sequence of int, optional
        Have the workers of each machine add up their progress, as `execute(accumulate=True)`
        does: on so many machines, or by worker the number of its machine.
    log : Log, optional
        Where the workers write down what they do. There is no clock here: each event
        has a number of its own, in the order in which they happen.
    memory_limit, spill_directory
        As for `execute`.

    Returns
    -------
    list
        What each `main` returned, by the worker's index.

    Raises
    ------
    WorkerError
        When a worker raises or crashes. The error has the first cause, and the seed.
    StalledError
        When no worker can go on. The error says what is outstanding.
    UsageError
        As for `execute`; and for a `seed`, a `replay` or `machines` that are none.

    Examples
    --------
    >>> simulate(lambda worker, x: worker.index + x, 10, workers=3, seed=7)
    [10, 11, 12]
    """
    check_main(main)
    schedule = Schedule(seed, crash=crash, replay=replay)
    simulation = Simulation(
        workers,
        schedule,
        progress=progress,
        machines=machines,
        log=log,
        memory_limit=memory_limit,
        spill_directory=spill_directory,
    )
    return simulation.run(main, *args)


class Simulation:
    """One run of several workers in one thread; to be used once.

    Parameters
    ----------
    workers : int
        How many.
    schedule : Schedule
        What happens when; after the run, `schedule.decisions` is its record.
    observe : callable, optional
        Called with the simulation after each decision was carried out.
    serialize : bool
        Encode and decode every message on its way.
    max_decisions : int
        After so many, the run is stopped as one that never ends.
    progress : "demand" or "eager"
        As for `execute`.
    machines : int or sequence of int, optional
        As for `simulate`.
    log : Log, optional
        Where the workers write down what they do.
    memory_limit, spill_directory
        As for `execute`.

    Attributes
    ----------
    workers : list of Worker or None
        By index; None until the worker has begun.
    network : SimulatedNetwork
        What is under way between them.
    """

    def __init__(
        self,
        workers: int,
        schedule: Schedule,
        *,
        observe: Callable[[Simulation], None] | None = None,
        serialize: bool = False,
        max_decisions: int = MAX_DECISIONS,
        progress: str = "demand",
        machines: int | Sequence[int] | None = None,
        log: LoggerFactory | None = None,
        memory_limit: int | str | None = None,
        spill_directory: str | PathLike[str] | None = None,
    ) -> None:
        check_workers(workers)
        check_options(progress, log, memory_limit=memory_limit, spill_directory=spill_directory)
        self._progress = progress
        self.machines = None if machines is None else machine_of_each(machines, workers)
        """By worker, the number of its machine, where sums are sent."""
        self._memory = memory_limit, spill_directory
        self.schedule = schedule
        self.workers: list[Worker | None] = [None] * workers
        self.network = SimulatedNetwork(
            workers,
            Random(schedule.seed),
            on_park=self._on_park,
            serialize=serialize,
            weigh=schedule.weight_of_link,
        )
        self._observe = observe
        self._max_decisions = max_decisions
        self._log = None if log is None else log.simulated()
        self._seats = [_Seat(self, index) for index in range(workers)]
        self._alive = list(range(workers))
        self._runnable: list[int] = []
        self._greenlets: list[greenlet] = []
        self._driver: greenlet | None = None
        self._results: dict[int, Any] = {}
        self._failures: list[Failure] = []

    @property
    def where(self) -> str:
        """The run and the moment, for messages."""
        return f"simulation seed {self.schedule.seed}, decision {len(self.schedule.decisions)}"

    def run(self, main: Callable[..., Result], *args: Any) -> list[Result]:
        """Run `main(worker, *args)` on each worker; the results by index."""
        self._driver = getcurrent()
        if self._log is not None:
            self._log.prepare()
        for index in range(len(self.workers)):
            worker = greenlet(partial(self._live, index, main, args))
            worker.gr_context = copy_context()
            self._greenlets.append(worker)
        with collector_off():
            try:
                self._drive()
            finally:
                self._end_all()
        if self._failures:
            found = first_cause(self._failures)
            raise found.as_error() from found.cause
        return [self._results[index] for index in range(len(self.workers))]

    def give_way(self) -> None:
        """Called by a worker: let the driver decide what happens next."""
        assert self._driver is not None
        self._driver.switch()

    # The driver.

    def _drive(self) -> None:
        pending = self.network.links
        self._look_at(tuple(self._alive))
        while self._alive:
            if not self._runnable and not pending:
                if not self._is_awaited():
                    found = "no worker can go on, and nothing is under way"
                    raise StalledError(self._describe(found))
                self.network.wait_for_wake()
                self._look_at(())
                continue
            decision = self.schedule.choose(self._runnable, pending, self._alive)
            self._carry_out(decision)
            if self._observe is not None:
                self._observe(self)
            if len(self.schedule.decisions) > self._max_decisions:
                raise StalledError(self._describe("the workers go on and on"))
            self._look_at(self._concerned(decision))

    def _concerned(self, decision: Decision) -> Sequence[int]:
        """Of which workers a decision may have changed whether they can go on.

        Besides those that were woken: to look at all of them would cost as much for each
        message as there are workers.
        """
        network = self.network
        if network._notices or len(network._closed) == len(self.workers):
            return tuple(self._alive)
        return (int(decision[2 if decision[0] == "deliver" else 1]),)

    def _look_at(self, doubtful: Sequence[int]) -> None:
        """See which of these workers can go on, and of those that were woken meanwhile."""
        unparked = self.network.unparked
        woken = []
        while unparked:
            woken.append(unparked.pop())  # other threads may add to it
        runnable = self._runnable
        for index in (*doubtful, *woken):
            seat = self._seats[index]
            place = bisect_left(runnable, index)
            was_runnable = place < len(runnable) and runnable[place] == index
            if seat.can_go_on() != was_runnable:
                if was_runnable:
                    del runnable[place]
                else:
                    runnable.insert(place, index)
            if seat.is_over and index in self._alive:
                self._alive.remove(index)

    def _is_awaited(self) -> bool:
        """Whether something outside of the simulation is under way that will wake a worker."""
        alive = zip(self.workers, self._seats, strict=True)
        return any(w and w.environment.n_outside and not seat.is_over for w, seat in alive)

    def _carry_out(self, decision: Decision) -> None:
        what, *rest = decision
        if what == "run":
            (index,) = rest
            self._greenlets[int(index)].switch()
        elif what == "deliver":
            self.network.deliver(*map(int, rest))
        else:
            (index,) = rest
            self._crash(int(index))

    def _crash(self, index: int) -> None:
        self._seats[index].has_crashed = True
        self.network.crash(index)
        self._failures.append(self._place(Failure(index, 0.0, "crashed")))
        self._end(self._greenlets[index])

    def _end(self, worker: greenlet) -> None:
        """End a worker without a word to its peers."""
        if worker and not worker.dead:  # one that has not begun has nothing to end
            worker.throw(_Ended)

    def _end_all(self) -> None:
        for seat, worker in zip(self._seats, self._greenlets, strict=True):
            seat.has_crashed = True
            self._end(worker)

    # A worker's greenlet.

    def _live(self, index: int, main: Callable[..., Any], args: tuple[Any, ...]) -> None:
        def begin(worker: Worker) -> Any:
            self.workers[index] = worker
            worker.timers.clock = seat.now
            result = main(worker, *args)
            check_result(main, result)
            seat.has_returned = True
            return result

        seat = self._seats[index]
        try:
            target = partial(
                run_worker,
                main=begin,
                progress=self._progress,
                accumulate=self.machines is not None,
                log=self._log,
                memory_limit=self._memory[0],
                spill_directory=self._memory[1],
                watches_for_stalls=False,
                responder=nullcontext,
            )
            self._results[index] = run_target(seat, target)
        except KeyboardInterrupt:
            raise  # of what runs the simulation
        except _Ended:
            pass
        except BaseException as cause:  # noqa: BLE001  (handed to the caller)
            if not seat.has_crashed:
                self._failures.append(self._place(failure(index, cause, 0.0)))

    def _place(self, found: Failure) -> Failure:
        """The failure with this run's own clock, and the seed."""
        at = float(len(self.schedule.decisions))
        return replace(found, at=at, what=f"{found.what} ({self.where})")

    def _on_park(self, index: int, timeout_s: float | None) -> None:
        self._seats[index].wait(timeout_s)

    # What is known when nothing can go on.

    def _describe(self, what: str) -> str:
        lines = [f"{what} ({self.where})"]
        for seat, worker in zip(self._seats, self._greenlets, strict=True):
            if seat.is_over:
                lines.append(f"worker {seat.index} has ended")
            else:
                at = " after its return" if seat.has_returned else _own_place(worker.gr_frame)
                lines.append(f"worker {seat.index} {seat.state}{at}; outstanding, as it knows:")
                lines += self._outstanding(seat.index)
        lines += [f"under way: {link}" for link in self.network.pending()]
        return "\n  ".join(lines)

    def _outstanding(self, index: int) -> list[str]:
        worker = self.workers[index]
        known = worker.outstanding() if worker is not None else []
        lines = [
            f"  {dataflow}: {place}, time {time}, count {count}"
            for dataflow, place, time, count in known[:MAX_OUTSTANDING]
        ]
        if len(known) > MAX_OUTSTANDING:
            lines.append(f"  and {len(known) - MAX_OUTSTANDING} more")
        return lines or ["  nothing"]


class _Seat:
    """A worker's communicator in a simulation: gives way where others would wait."""

    def __init__(self, simulation: Simulation, index: int) -> None:
        self.index = index
        self.peers = len(simulation.workers)
        self.machines = simulation.machines
        self.state = "has not begun"
        self.has_crashed = False
        self.has_returned = False
        self._simulation = simulation
        self._inner: SimulatedCommunicator = simulation.network.communicator(index)
        self._has_just_waited = False
        self.is_suspended = False
        """See `Communicator`."""
        self.is_urgent = False
        """The same."""
        self._now = 0.0

    def now(self) -> float:
        """The worker's clock: a step takes a little, and waiting as long as it was asked to."""
        return self._now

    @property
    def is_over(self) -> bool:
        """Whether the worker will do nothing any more."""
        return self.has_crashed or self.state == "has ended"

    def can_go_on(self) -> bool:
        """Whether there is a reason for the worker to go on."""
        if self.is_over:
            return False
        network = self._simulation.network
        if network._notices or self.state not in _WAITING:
            return True
        if self.state == "closes":
            return network._can_close(self.index)
        return self._is_roused()

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """See `Communicator.objects_under_way`."""
        return self._inner.objects_under_way()

    def _is_roused(self) -> bool:
        """Whether there is something that ends its waiting."""
        return self._inner._mailbox.has_touched() or self._inner._is_woken

    def channel(self) -> Channel:
        """As the network's."""
        return self._inner.channel()

    def receive(self) -> list[int]:
        """Let others go first, then see what has arrived."""
        self._now += STEP_S
        if not self._has_just_waited:
            self.is_suspended = True
            self._give_way("runs")
            self.is_suspended = False
        self._has_just_waited = False
        return self._inner.receive()

    def flush(self) -> None:
        """As the network's."""
        self._inner.flush()

    def park(self, timeout_s: float | None = None) -> None:
        """Wait for a reason to go on."""
        self._inner.park(timeout_s)

    def wait(self, timeout_s: float | None) -> None:
        """Called by the network where the worker has to wait."""
        if self.state == "closes":
            self._give_way("closes")
            return
        # What waits with a timeout may go on at any moment: then its time is over.
        self._give_way("waits" if timeout_s is None else "waits for a while")
        if timeout_s is not None and not self._is_roused():
            self._now += timeout_s
        self._has_just_waited = True

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """As the network's."""
        self._inner.hold_unsent_in(make)

    def unpark(self) -> None:
        """As the network's."""
        self._inner.unpark()

    def close(self) -> None:
        """Wait for the others to close, too."""
        self.state = "closes"
        self._inner.close()
        self.state = "has ended"

    def abort(self, cause: BaseException | None = None) -> None:
        """Notify the peers, unless they know."""
        self.state = "has ended"
        if not self.has_crashed:
            self._inner.abort(cause)

    def _give_way(self, state: str) -> None:
        self.state = state
        self._simulation.give_way()


_WAITING = ("waits", "closes")


class _Ended(BaseException):
    """Thrown into a worker to end it; nothing handles it on the way."""


def _own_place(frame: FrameType | None) -> str:
    """Where in the program's own code a worker stands."""
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    if frame is None:
        return ""
    return f" in {frame.f_code.co_name}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
