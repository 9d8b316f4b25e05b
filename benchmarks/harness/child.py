"""One case, or some that share a session, or the making of inputs, in a process of its own.

    python -m benchmarks.harness.child RESULT.json BENCHMARK SIZE SAMPLES CASE...
    python -m benchmarks.harness.child RESULT.json BENCHMARK SIZE prepare

What the cases gave is written to RESULT.json: libraries print to standard output
as they like.
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness.case import PEER_PATIENCE_S, Case, Effort
from benchmarks.harness.find import find
from benchmarks.harness.machine import mode


def main(result: str, name: str, size: Any, samples: str, *keys: str) -> None:
    """Run the cases, and write the readings of those that could be measured."""
    benchmark = find(name)
    if samples == "prepare":
        if benchmark.prepare is not None:
            benchmark.prepare(size)
        return
    found: dict[str, Any] = {}
    for key in keys:
        (case,) = [case for case in benchmark.cases(size) if case.key == key]
        try:
            found[key] = _reading(case, min(int(samples), case.samples))
        except Exception as error:
            if len(keys) == 1:
                raise
            traceback.print_exc()  # the others go on
            found[key] = {"missing": f"failed: {type(error).__name__}: {error}"[:200]}
        Path(result).write_text(json.dumps(found))


def _reading(case: Case, samples: int) -> dict[str, Any]:
    effort = Effort(samples) if case.is_ours else Effort(samples, PEER_PATIENCE_S)
    ours = {"mode": mode()} if case.is_ours else {}
    return {**asdict(case.measure(effort)), **ours}


if __name__ == "__main__":
    main(*sys.argv[1:])
