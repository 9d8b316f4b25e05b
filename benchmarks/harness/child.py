"""One case, or the making of a benchmark's inputs, in a process of its own.

    python -m benchmarks.harness.child RESULT.json BENCHMARK SIZE SAMPLES CASE
    python -m benchmarks.harness.child RESULT.json BENCHMARK SIZE prepare

What the case gave is written to RESULT.json: libraries print to standard output
as they like.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness.case import OURS, PEER_PATIENCE_S, Effort
from benchmarks.harness.find import find
from benchmarks.harness.machine import mode


def main(result: str, name: str, size: Any, samples: str, key: str = "") -> None:
    """Run the case and write its reading."""
    benchmark = find(name)
    if samples == "prepare":
        if benchmark.prepare is not None:
            benchmark.prepare(size)
        return
    (case,) = [case for case in benchmark.cases(size) if case.key == key]
    effort = Effort(int(samples)) if case.is_ours else Effort(int(samples), PEER_PATIENCE_S)
    reading = case.measure(effort)
    ours = {"mode": mode()} if case.who.startswith(OURS) else {}
    Path(result).write_text(json.dumps({**asdict(reading), **ours}))


if __name__ == "__main__":
    main(*sys.argv[1:])
