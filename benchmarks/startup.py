"""Starting: what `import pointstamp` costs, and how soon a program has its first answer.

Each sample is a new interpreter; an interpreter that imports nothing is the baseline.
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)

BARE = "an empty program"
PROGRAMS = {
    (BARE, 0): "pass",
    (f"{OURS}, import", 0): "import pointstamp",
    (f"{OURS}, a first answer from rows", 1): (
        "import pointstamp as ps; ps.execute(lambda worker: worker.index)"
    ),
    (f"{OURS}, a first answer from rows", 2): (
        "import pointstamp as ps; ps.execute(lambda worker: worker.index, workers=2)"
    ),
    (f"{OURS}, triangles of three edges", 1): (
        "import pointstamp as ps; from pointstamp.graph import count_triangles; "
        "print(ps.testing.collect(lambda scope: "
        "count_triangles(scope.to_stream([(1, 2), (2, 3), (1, 3)]))))"
    ),
    ("NumPy, import", 0): "import numpy",
    ("pyarrow, import", 0): "import pyarrow",
    ("Numba, import", 0): "import numba",
}


PEAK = """
import resource
with open("/proc/self/status") as status:
    own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""
"""What a program prints of its memory, in KiB: the system counts what a new process had before
it became another program, which is ours."""


def starting(program: str) -> Measure:
    """From starting the interpreter to its end; the first time, caches are filled."""

    def measure(effort: Effort) -> Reading:
        peak_kib = int(_run(program + PEAK).split()[-1])
        seconds = []
        for _ in range(effort.samples):
            began = perf_counter()
            _run(program)
            seconds.append(perf_counter() - began)
        return Reading(seconds, [peak_kib * 1024])

    return measure


def _run(program: str) -> bytes:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout


def cases(size: Size) -> list[Case]:
    """The same for all sizes: it does not get smaller."""
    chosen = list(PROGRAMS.items())[: 2 if size == "tiny" else None]
    return [
        Case(
            who,
            starting(program),
            at={"workers": workers} if workers else {},
            needs=("numba",) if who.startswith("Numba") else (),
        )
        for (who, workers), program in chosen
    ]


BENCHMARK = Benchmark(
    name="startup",
    title="Starting a program",
    about="A whole process, from start to end, with warm caches.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(BARE,),
    floors=(BARE, "NumPy, import", "pyarrow, import", "Numba, import"),
    targets=(Target({}, 150),),
)
