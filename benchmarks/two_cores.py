"""The machine itself: what two processes gain over one, where neither waits for the other.

The same work, all of it in one process or a half in each of two, that share nothing and send
nothing. No dataflow on two workers can gain more than these do. Processors that a machine says
are two may be one with two sets of registers, or share their caches and their way to memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, on_workers

REPEATS = {"tiny": 2, "small": 20, "full": 100}
N_BYTES, N_NUMBERS, N_LARGE, N_STEPS = 1 << 16, 1 << 21, 1 << 24, 100_000


def interpreter() -> Run:
    """A loop of Python."""

    def run() -> None:
        total = 0
        for number in range(N_STEPS):
            total += number

    return run


def arithmetic() -> Run:
    """A checksum of what a cache of the first level holds, sixteen times."""
    block = bytes(N_BYTES // 2)

    def run() -> None:
        for _ in range(16):
            zlib.crc32(block)

    return run


def at_random() -> Run:
    """Numbers taken out of 16 MiB of them, which no cache of a core holds, at random places."""
    rng = np.random.default_rng(7)
    numbers, places = np.arange(N_NUMBERS), rng.integers(0, N_NUMBERS, N_NUMBERS // 4)
    taken = np.empty(len(places), numbers.dtype)
    return lambda: numbers.take(places, out=taken, mode="clip")


def in_order() -> Run:
    """A sum over 128 MiB."""
    numbers = np.ones(N_LARGE, np.int64)
    return numbers.sum


WORKS: dict[str, Callable[[], Run]] = {
    "a loop of Python": interpreter,
    "a checksum of 32 KiB": arithmetic,
    "16 MiB read at random": at_random,
    "128 MiB read in order": in_order,
}


def shared_out(worker: ps.Worker, name: str, repeats: int) -> Run:
    """This worker's part of `repeats` times the work; it sends nothing."""
    work = WORKS[name]()

    def run() -> None:
        for _ in range(repeats // worker.peers):
            work()

    return run


def cases(size: Size) -> list[Case]:
    """Each work in one process, then in two."""
    repeats = REPEATS[size]
    return [
        Case(
            name,
            on_workers(shared_out, name, repeats, workers=workers, once=True),
            repeats,
            {"workers": workers},
        )
        for name in WORKS
        for workers in (1, 2)
    ]


BENCHMARK = Benchmark(
    name="two_cores",
    title="The machine: two processes that do not wait for each other",
    about="The same work in one process, or half of it in each of two: the least that two "
    "workers can take on this machine.",
    quantity=Quantity("ms each", 1e3),
    cases=cases,
)
