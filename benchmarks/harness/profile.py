"""Where the time goes: the first case of ours under the interpreter's profiler.

Its figures are no measurements, since calls cost more under a profiler; their shares
are what one looks at. What is compiled shows as calls from outside only.
"""

from __future__ import annotations

import cProfile
import io
import pstats

from benchmarks.harness.case import Benchmark, Effort, Size
from benchmarks.harness.driver import inputs_of

N_LINES = 25


def profile(benchmark: Benchmark, size: Size) -> str:
    """The functions that took most time themselves, on one worker, in this process."""
    case = next(
        case for case in benchmark.cases(size) if case.is_ours and case.at.get("workers", 1) == 1
    )
    profiler = cProfile.Profile()
    with inputs_of(benchmark, size):
        # Twice: the first time is for imports and kernels.
        case.measure(Effort(1))
        profiler.enable()
        case.measure(Effort(1))
        profiler.disable()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(N_LINES)
    return f"{benchmark.name}: {case.key}\n{text.getvalue().rstrip()}"
