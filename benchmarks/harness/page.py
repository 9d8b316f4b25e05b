"""docs/benchmarks.md and its plots, made of what is in results/ and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.harness import results as kept
from benchmarks.harness.case import OURS, RUST, At, Benchmark, Quantity
from benchmarks.harness.find import find, names
from benchmarks.harness.plots import draw
from benchmarks.harness.pooled import DIFFER
from benchmarks.harness.results import Results, Row
from benchmarks.harness.text import said, table, where

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
PLOTS = DOCS / "benchmarks"

BUSY = 0.15
"""With more of the processors taken by others, figures say little, of several workers least."""

Measured = tuple[Benchmark, Results]

HOW = """\
# Benchmarks

All benchmarks, the engines that they are compared with, and the cases where Pointstamp is slower.
Every figure on this page comes from the files in [`benchmarks/results/`](../benchmarks/results):

```console
$ make bench                      # an hour on two cores: all but those that run only by name
$ make bench-spark                # the long benchmarks on Spark: services, and large graphs
$ python -m benchmarks --list         # list the benchmarks
$ python -m benchmarks triangles      # run one of them
$ python -m benchmarks chain --profile        # where the time goes
$ python -m benchmarks --page     # rewrite this page and its plots from the results
```

[Where the time goes](profiles.md) has profiles of the rows that are furthest from their targets.

Method:

- Every case, ours and each baseline, runs in a process of its own, one after the other, on the
  same machine in the same run. Another process prepares its input beforehand. Cases of services
  that need Spark share a session, and so a process; their memory peaks are cumulative.
- The first sample is discarded: it imports, compiles and warms caches. Five samples follow.
  Programs of other engines that take more than 3 s are measured three times. What takes more than
  20 s is measured once, the first time.
- Tables have the median and, as the spread, the least and the greatest sample. "x baseline" is the
  ratio to the time of the named baseline in the same run: below 1 is faster. Where
  samples are many epochs or batches, p99 is their 99th percentile.
- Results are compared: a run in which two contenders disagree fails.
- *Of two runs* means that samples come from runs at least an hour apart (`--pool`). Figures of
  these, and of collections, are listed if the median of each run is within the spread of the other;
  others are left out, also of other engines.
- Peak memory is the greatest resident memory of any process of the case (for us: per worker),
  interpreter and libraries included. A worker with our kernels loaded takes about 85 MiB before
  it has any data, so only large graphs show the memory of a graph.
- *Floors* do less than we do, and are lower bounds: sending a byte to another process
  and back, or a loop in plain Python.
- Each table names its machine; rows of different machines are never compared. Programs in Rust
  (timely dataflow's own examples, and others on timely) run with ours if their sources
  are in `../shared/peers` beside the checkout, or in `POINTSTAMP_PEERS`; they are not part
  of this project, and are built by the first run, which takes minutes more. They and the
  corresponding cases of ours take turns, three times, on one worker and on two: ours as
  processes, theirs as processes and, in rows of their own, as threads. Rates are of all workers
  together. The output of Rust programs is compared with ours, on two workers if both route
  records alike.
- *Rows* are Python objects, one per record; everything else is columns.
"""


def write_page() -> list[Path]:
    """Write the page and a plot for each benchmark that has results; what was written."""
    measured = [(find(name), kept.load(path)) for name in names() if (path := _path(name)).exists()]
    PLOTS.mkdir(parents=True, exist_ok=True)
    plots = [
        draw(benchmark, results, PLOTS / f"{benchmark.name}.svg") for benchmark, results in measured
    ]
    PAGE.write_text(page(measured))
    return [PAGE, *plots]


def page(measured: Sequence[Measured]) -> str:
    """The whole page."""
    parts = [HOW, *_machines(measured), *_glance(measured), *beside_rust(measured)]
    parts += _losses(measured)
    for benchmark, results in measured:
        parts += _section(benchmark, results)
    return "\n".join(parts)


def _path(name: str) -> Path:
    return kept.FOLDER / f"{name}.json"


# The machine, and who else was there.


def _machines(measured: Sequence[Measured]) -> Iterator[str]:
    yield "## The machine\n"
    for text in dict.fromkeys(_machine(results) for _, results in measured):
        of = [b.name for b, results in measured if _machine(results) == text]
        yield f"- {text}" if len(of) == len(measured) else f"- {text}: {', '.join(of)}"
    yield ""


def _machine(results: Results) -> str:
    machine, versions = results.machine, results.versions
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; {results.date}"
    )


# The table of targets.


def _glance(measured: Sequence[Measured]) -> Iterator[str]:
    yield "## Targets\n"
    rows = []
    for benchmark, results in measured:
        rows += _targets(benchmark, results) + _growths(benchmark, results)
        rows += _ratios(benchmark, results) + _memories(benchmark, results)
    yield table(
        ["work", "at", "compiled", "interpreted", "target", "stretch target", "",
         "best other", RUST],
        rows,
    )  # fmt: skip


def _targets(benchmark: Benchmark, results: Results) -> list[list[str]]:
    rows = []
    for target in benchmark.targets:
        of_mode = _by_mode(results, target.at)
        differ = _differ(results, target.at)
        best = None if differ else of_mode.get("compiled") or of_mode.get("interpreted")
        if best is None and not differ:
            continue
        quantity = benchmark.quantity
        others = [
            row
            for row in results.rows
            if _is_peer(row, benchmark) and not row.is_rust and _fits(row.at, target.at)
        ]
        leader = min(others, key=lambda r: r.value(Quantity("s")), default=None)
        rows.append(
            [
                _link(benchmark),
                where(target.at),
                *(_value(of_mode.get(mode), quantity) for mode in ("compiled", "interpreted")),
                f"{said(target.value)} {quantity.unit}",
                said(target.stretch) if target.stretch is not None else "",
                kept.verdict(best, target, quantity) if best else "the runs differ",
                f"{leader.who} {said(leader.value(quantity))}" if leader else "",
                _in_rust(results, target.at, quantity),
            ]
        )
    return rows


def _growths(benchmark: Benchmark, results: Results) -> list[list[str]]:
    rows = []
    for target in benchmark.growth:
        grown = {mode: _growth(benchmark, results, mode, target.at) for mode in MODES}
        best = grown["compiled"] or grown["interpreted"]
        if best is None:
            continue
        meets = best <= target.value
        stretched = target.stretch is not None and best <= target.stretch
        rows.append(
            [
                _link(benchmark),
                where(target.at),
                *(f"{said(grown[mode])} x the first" if grown[mode] else "" for mode in MODES),
                f"{said(target.value)} x",
                said(target.stretch) if target.stretch is not None else "",
                "stretch target" if stretched else "target" if meets else "missed",
                "",
                _grown_in_rust(benchmark, results, target.at),
            ]
        )
    return rows


def _grown_in_rust(benchmark: Benchmark, results: Results, at: At) -> str:
    """The same of Rust: the point in terms of the first."""
    rust = [row for row in results.rows if row.is_rust and row.seconds]
    grown = _grown(benchmark, rust, at)
    return f"{rust[0].who} {said(grown)} x" if grown else ""


MODES = ("compiled", "interpreted")


def _growth(benchmark: Benchmark, results: Results, mode: str, at: At) -> float | None:
    """How many times its first point's time the point `at` takes."""
    rows = [row for row in results.rows if row.is_ours and row.mode == mode and row.seconds]
    return _grown(benchmark, rows, at)


def _grown(benchmark: Benchmark, rows: Sequence[Row], at: At) -> float | None:
    """The time at `at` in terms of that at the first point of the same curve."""
    rest = {name: value for name, value in at.items() if name != benchmark.axis}
    curve = [row for row in rows if rest.items() <= row.at.items()]
    last = next((row for row in curve if _fits(at, row.at)), None)
    if last is None:
        return None
    per_piece = Quantity("s")
    return last.value(per_piece) / curve[0].value(per_piece)


def _ratios(benchmark: Benchmark, results: Results) -> list[list[str]]:
    rows = []
    for ratio in benchmark.ratios:
        times = {
            mode: kept.times_baseline(row, results.rows, benchmark)
            for mode, row in _by_mode(results, ratio.at).items()
        }
        best = times.get("compiled") or times.get("interpreted")
        if best is None:
            continue
        rows.append(
            [
                _link(benchmark),
                where(ratio.at),
                *(f"{said(times[mode])} x" if times.get(mode) else "" for mode in MODES),
                f"{said(ratio.value)} x {benchmark.baselines[0]}",
                "",
                "target" if best <= ratio.value else "missed",
                "",
                "",
            ]
        )
    return rows


def _memories(benchmark: Benchmark, results: Results) -> list[list[str]]:
    rows = []
    for ratio in benchmark.memory:
        size = results.input_bytes.get(kept.point(ratio.at))
        times = {
            mode: max(row.peaks) / size
            for mode, row in _by_mode(results, ratio.at).items()
            if size and row.peaks
        }
        best = times.get("compiled") or times.get("interpreted")
        if best is None:
            continue
        rows.append(
            [
                f"{_link(benchmark)}, peak memory",
                where(ratio.at),
                *(f"{said(times[mode])} x" if times.get(mode) else "" for mode in MODES),
                f"{said(ratio.value)} x the columns",
                "",
                "target" if best <= ratio.value else "missed",
                "",
                "",
            ]
        )
    return rows


def _by_mode(results: Results, at: At) -> dict[str, Row]:
    rows = [row for row in results.rows if row.is_ours and row.at == at and row.seconds]
    return {row.mode or "": row for row in rows}


def _differ(results: Results, at: At) -> bool:
    """Whether two runs of what is compiled, of which one would do, did not agree."""
    rows = (row for row in results.rows if row.is_ours and row.mode == "compiled" and row.at == at)
    return any(row.missing == DIFFER for row in rows)


def _is_peer(row: Row, benchmark: Benchmark) -> bool:
    return not row.is_ours and row.who not in benchmark.floors and bool(row.seconds)


def _fits(theirs: At, ours: At) -> bool:
    return theirs.items() <= ours.items()


def _value(row: Row | None, quantity: Quantity) -> str:
    return "" if row is None else said(row.value(quantity))


def _in_rust(results: Results, at: At, quantity: Quantity) -> str:
    rows = [row for row in results.rows if row.is_rust and row.seconds and _fits(row.at, at)]
    return "; ".join(f"{row.who} {_value(row, quantity)}" for row in rows)


def _link(benchmark: Benchmark) -> str:
    return f"[{benchmark.name}](#{benchmark.name})"


# Beside Rust.


def beside_rust(measured: Sequence[Measured]) -> Iterator[str]:
    """Each row of ours that a program in Rust does the work of, in the same run."""
    yield "\n## Beside Rust\n"
    rows = [line for benchmark, results in measured for line in _raced(benchmark, results)]
    absences = {r.missing for _, results in measured for r in results.rows if r.is_rust}
    if rows:
        yield (
            "Our best mode, and Rust's quickest program for the same work on as many workers (on "
            "two of ours, processes: once its threads and once its processes). Below 1 we take "
            "less time.\n"
        )
        yield table(["work", "at", "", OURS, "Rust", "times Rust's time"], rows)
    for absence in sorted(filter(_is_of_all_rust, absences)):
        yield f"\n{absence}."
    without = [_link(benchmark) for benchmark, _ in measured if not _has_rust(benchmark)]
    if without:
        yield (
            f"\nThere is no program in Rust, and so no figure, for {', '.join(without)}. For the "
            "rest see the sections."
        )
    yield ""


def _raced(benchmark: Benchmark, results: Results) -> Iterator[list[str]]:
    per_piece, quantity = Quantity("s"), benchmark.quantity
    for row in _best_modes(results):
        rivals = [r for r in results.rows if r.is_rust and r.seconds and _fits(r.at, row.at)]
        for kind in dict.fromkeys("threads" in rival.who for rival in rivals):
            best = min(
                (rival for rival in rivals if ("threads" in rival.who) == kind),
                key=lambda rival: rival.value(per_piece),
            )
            times = row.value(per_piece) / best.value(per_piece)
            yield [
                _link(benchmark),
                where(row.at),
                quantity.unit,
                said(row.value(quantity)),
                f"{said(best.value(quantity))} ({best.who.removeprefix(RUST).strip()})",
                f"**{said(times)}**" if times <= 1 else said(times),
            ]


def _is_of_all_rust(absence: str) -> bool:
    """Whether it says of all programs in Rust, and not of a case, why they were not run."""
    return absence.startswith(f"{RUST} was not run")


def _has_rust(benchmark: Benchmark) -> bool:
    return any(case.is_rust for case in benchmark.cases("full"))


# Where we lose.


def _losses(measured: Sequence[Measured]) -> Iterator[str]:
    yield "\n## Where we lose\n"
    yield (
        "What is faster than our best mode at the same, on as many workers as there are cores or "
        "fewer; of curves, the last point. Floors are not counted.\n"
    )
    for benchmark, results in measured:
        lines = list(_lost(benchmark, results))
        if lines:
            yield f"- {_link(benchmark)}: " + "; ".join(lines)
    yield ""


def _lost(benchmark: Benchmark, results: Results) -> Iterator[str]:
    per_piece = Quantity("s")
    for row in _best_modes(results):
        if not _is_shown(row, benchmark, results):
            continue
        peers = [p for p in kept.faster_peers(row, results.rows) if p.who not in benchmark.floors]
        if peers:
            times = [row.value(per_piece) / p.value(per_piece) for p in peers]
            better = "less" if benchmark.quantity.unit == "MiB" else "as fast"
            named = [f"{p.who} ({said(t)} x {better})" for p, t in zip(peers, times, strict=True)]
            yield f"{where(row.at) or row.who}: {', '.join(named)}"


def _is_shown(row: Row, benchmark: Benchmark, results: Results) -> bool:
    if int(row.at.get("workers", 1)) > int(results.machine["cores"]):
        return False
    axis = benchmark.axis
    last = max((int(r.at[axis]) for r in results.rows if axis in r.at), default=0) if axis else 0
    return axis is None or row.at.get(axis) == last


def _best_modes(results: Results) -> list[Row]:
    """Our rows, those of interpreted runs only where there is no compiled one."""
    found: dict[tuple[str, str], Row] = {}
    for row in results.rows:
        if row.is_ours and row.seconds and not _differ(results, row.at):
            key = (row.who, where(row.at))
            if key not in found or row.mode == "compiled":
                found[key] = row
    return list(found.values())


# A section for each.


def _section(benchmark: Benchmark, results: Results) -> Iterator[str]:
    quantity = benchmark.quantity
    yield f'<a id="{benchmark.name}"></a>\n\n## {benchmark.title}\n'
    unit = f"{quantity.unit}, {'more' if quantity.is_rate else 'less'} is better"
    source = f"[`{benchmark.name}.py`](../benchmarks/{benchmark.name}.py)"
    yield f"{benchmark.about} In {unit}. {source}\n"
    if results.n_runs > 1:
        yield "Of two runs.\n"
    if results.size != "full":
        yield f"*A trial run with inputs of size {results.size!r}: figures to be replaced.*\n"
    if not _is_of_these_cases(benchmark, results):
        yield (
            "*Results of an earlier form of this benchmark, which had other cases: figures to be "
            "replaced.*\n"
        )
    if results.others_share > BUSY:
        yield (
            f"*Other programs took {results.others_share:.0%} of the processors before this run or "
            "after it: figures to be replaced.*\n"
        )
    yield f"![{benchmark.title}](benchmarks/{benchmark.name}.svg)\n"
    with_input = bool(results.input_bytes)
    header = ["who", "at", "mode", "median"] + ["p99"] * benchmark.tells_p99
    header += ["spread", "runs", "x baseline", "peak MiB"]
    header += ["x input"] if with_input else []
    header += [f"M {benchmark.counted}/s per core"] if benchmark.counted else []
    yield table(header, [_told(row, benchmark, results) for row in results.rows if row.seconds])
    baseline = " or ".join(benchmark.baselines)
    if baseline:
        yield f"\nBaseline: {baseline}."
    if with_input:
        yield '\n"x input": the peak in terms of the graph as two columns of 64-bit integers.'
    if benchmark.floors:
        yield f"\nFloors: {', '.join(benchmark.floors)}."
    for absence in dict.fromkeys(row.missing for row in results.rows if row.missing):
        absent = [row for row in results.rows if row.missing == absence]
        named = "; ".join(f"{row.who} {where(row.at)}".strip() for row in absent)
        yield f"\n{absence}." if _is_of_all_rust(absence) else f"\nNot there: {named}: {absence}."
    if not _has_rust(benchmark):
        yield "\nThere is no program in Rust for this."
    elif not any(row.is_rust for row in results.rows):
        yield "\nRust was not run with these."
    yield ""


def _is_of_these_cases(benchmark: Benchmark, results: Results) -> bool:
    """Whether all that was measured is what would be measured now."""
    cases = [(case.who, case.at) for case in benchmark.cases(results.size)]
    return all((row.who, row.at) in cases for row in results.rows)


def _told(row: Row, benchmark: Benchmark, results: Results) -> list[str]:
    quantity = benchmark.quantity
    low, high = row.spread(quantity)
    times = kept.times_baseline(row, results.rows, benchmark)
    peak = max(row.peaks, default=0)
    told = [
        f"**{row.who}**" if row.is_ours else row.who + (f" ({row.note})" if row.note else ""),
        where(row.at),
        row.mode or "",
        said(row.value(quantity)),
        *[said(row.p99(quantity))] * benchmark.tells_p99,
        f"{said(low)} to {said(high)}",
        str(len(row.seconds)),
        said(times) if times is not None else "",
        said(peak / 2**20) if peak else "",
    ]
    if results.input_bytes:
        size = results.input_bytes.get(kept.point(row.at))
        told.append(said(peak / size) if size and peak else "")
    if benchmark.counted:
        rate = 1e-6 * int(row.answer) / median(row.seconds)
        told.append(said(rate / _n_cores(row, benchmark, results)))
    return told


def _n_cores(row: Row, benchmark: Benchmark, results: Results) -> int:
    """How many cores a contender had to itself."""
    there = int(results.machine["cores"])
    if row.who in benchmark.on_all_cores:
        return there
    return min(there, int(row.at.get("workers", 1)))
