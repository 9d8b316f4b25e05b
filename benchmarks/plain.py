"""What the benchmarks of coordination share: how many workers, and beside what.

The baselines are plain Python, no library. What they do is less than a barrier or a
loop of a dataflow does. They show the floor that the interpreter and the operating
system set on this machine, in this run.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from time import perf_counter

from benchmarks.harness.case import OURS, At, Case, Effort, Reading
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.harness.memory import peaks
from pointstamp import Worker

ASYNCIO = "asyncio, call_soon"
PIPE = "a byte to a process and back"
BARRIER = "multiprocessing.Barrier"
FLOORS = (ASYNCIO, PIPE, BARRIER)


SHARES = {1: 1, 2: 5, 4: 20}
"""By the number of workers: a round takes longer on more, so fewer are made."""


def rounds_of(workers: int, rounds: int) -> int:
    """How many rounds are made on so many workers, if one of them makes `rounds`."""
    return max(10, rounds // SHARES[workers])


def coordination(
    program: Callable[[Worker, int], Run], rounds: int, at: At | None = None
) -> list[Case]:
    """Cases of ours: `program` for `rounds` on one worker, for fewer where each takes longer."""
    return [
        Case(
            OURS,
            on_workers(program, rounds_of(workers, rounds), workers=workers),
            rounds_of(workers, rounds),
            {**(at or {}), "workers": workers},
            in_both_modes=True,
        )
        for workers in SHARES
    ]


def floors(rounds: int) -> list[Case]:
    """One process: what an event loop takes to call once. Two: what a byte's way takes."""
    few = max(10, rounds // 10)
    two = {"workers": 2}
    return [
        Case(ASYNCIO, alone(call_soon, rounds), rounds, {"workers": 1}),
        Case(PIPE, back_and_forth(few), few, two),
        Case(BARRIER, barrier(few), few, two),
    ]


def call_soon(rounds: int) -> Run:
    """A callback that asks for itself to be called again, through the event loop."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def again(left: int) -> None:
            if left:
                loop.call_soon(again, left - 1)
            else:
                done.set_result(None)

        again(rounds)
        await done

    return lambda: asyncio.run(main())


def back_and_forth(rounds: int):
    """Two processes that wait for each other's byte, in turns."""

    def measure(effort: Effort) -> Reading:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        echo = context.Process(target=_echo, args=(theirs,))
        echo.start()
        theirs.close()
        seconds = []
        for _ in range(effort.samples + 1):
            began = perf_counter()
            for _ in range(rounds):
                ours.send_bytes(b"x")
                ours.recv_bytes()
            seconds.append(perf_counter() - began)
        found = peaks()
        ours.close()
        echo.join()
        return Reading(seconds[1:], found)

    return measure


def _echo(pipe: Connection) -> None:
    try:
        while True:
            pipe.send_bytes(pipe.recv_bytes())
    except EOFError:
        pass


def barrier(rounds: int):
    """Two processes that meet at the standard library's barrier."""

    def measure(effort: Effort) -> Reading:
        context = multiprocessing.get_context("spawn")
        meeting = context.Barrier(2)
        n_rounds = rounds * (effort.samples + 1)
        other = context.Process(target=_meet, args=(meeting, n_rounds))
        other.start()
        meeting.wait()
        seconds = []
        for _ in range(effort.samples + 1):
            began = perf_counter()
            _meet_again(meeting, rounds)
            seconds.append(perf_counter() - began)
        found = peaks()
        other.join()
        return Reading(seconds[1:], found)

    return measure


def _meet(meeting: Barrier, rounds: int) -> None:
    meeting.wait()
    _meet_again(meeting, rounds)


def _meet_again(meeting: Barrier, rounds: int) -> None:
    for _ in range(rounds):
        meeting.wait()
