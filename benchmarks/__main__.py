"""The command line of the benchmarks; `python -m benchmarks --help` says what it takes."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from benchmarks.harness.case import SIZES, Benchmark
from benchmarks.harness.driver import run
from benchmarks.harness.find import find, names
from benchmarks.harness.pooled import pool
from pointstamp import build_info


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a case of ours failed, 2 if it was asked for wrongly."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = [find(name) for name in asked.names or names()]
        if not (asked.names or asked.list):
            chosen = [benchmark for benchmark in chosen if not benchmark.when_named]
    except LookupError as error:
        print(f"benchmarks: {error.args[0]}", file=sys.stderr)
        return 2
    if asked.list:
        for benchmark in chosen:
            print(f"{benchmark.name:20} {benchmark.title}")
        return 0
    if asked.profile:
        from benchmarks.harness.profile import profile

        for benchmark in chosen:
            print(profile(benchmark, asked.size))
        return 0
    if asked.pool:
        try:
            for benchmark in chosen:
                pool(benchmark.name, *map(Path, asked.pool)).save()
        except (OSError, ValueError) as error:
            print(f"benchmarks: {error}", file=sys.stderr)
            return 2
    status = 0 if asked.page or asked.pool else _run(chosen, asked)
    if asked.page or (asked.size == "full" and not asked.no_page):
        return max(status, _write_page())
    return status


def _write_page() -> int:
    if find_spec("matplotlib") is None:
        print("benchmarks: the page needs matplotlib: pip install -e '.[bench]'", file=sys.stderr)
        return 1
    from benchmarks.harness.page import write_page

    for path in write_page():
        print(f"wrote {path}")
    return 0


def _run(chosen: list[Benchmark], asked: argparse.Namespace) -> int:
    status = 0
    began = time.monotonic()
    print(f"pointstamp's core is {build_info()}", flush=True)
    for benchmark in chosen:
        print(f"{benchmark.name}: {benchmark.title}", flush=True)
        try:
            results = run(
                benchmark, asked.size, asked.samples, lambda line: print(line, flush=True)
            )
        except RuntimeError as error:
            print(f"  failed: {error}", flush=True)
            status = 1
            continue
        if any(row.is_ours and row.missing for row in results.rows):
            status = 1
        if asked.size == "full" or asked.save:
            results.save()
        print(f"  {time.monotonic() - began:.0f} s so far", flush=True)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what is claimed, with baselines in the same run.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="which; if none is named, all but those that say that they take long",
    )
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument(
        "--size",
        choices=SIZES,
        default="full",
        help="small and tiny are for trying: their results are not kept",
    )
    parser.add_argument("--samples", type=int, default=5, metavar="N", help="of each case (5)")
    parser.add_argument("--save", action="store_true", help="keep results of any size")
    parser.add_argument(
        "--profile", action="store_true", help="show where ours spends its time instead"
    )
    parser.add_argument("--no-page", action="store_true", help="leave docs/benchmarks.md as it is")
    parser.add_argument(
        "--pool",
        nargs=2,
        metavar="FOLDER",
        help="keep where the results of two runs, an hour or more apart, agree; measure nothing",
    )
    parser.add_argument(
        "--page", action="store_true", help="only make docs/benchmarks.md and its plots again"
    )
    return parser


def _end(number: int, frame: FrameType | None) -> None:
    """Unwind, so that the case under way is ended and its files are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _end)
    sys.exit(main(sys.argv[1:]))
