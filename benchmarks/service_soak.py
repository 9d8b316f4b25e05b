"""An hour of a service: does its memory grow?

Three programs run at once, each paced, so that they take a small part of a core: a service
on two processes that is fed and read by this program; one on two tasks of Spark that a stream of
Spark feeds and another reads; and a count that Spark keeps in a stream of its own. All of
them write a checkpoint and snapshots, and whoever reads lets go of what it has read. The
memory of each process is looked at every ten seconds.

    python -m benchmarks.service_soak SECONDS FOLDER
    python -m benchmarks.service_soak --keep FOLDER

The first runs it for any time, and leaves the samples in FOLDER; the second makes results of
those of an hour.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Quantity,
    Reading,
    Size,
    Target,
    with_others,
)
from benchmarks.harness.driver import run as measure
from benchmarks.harness.memory import descendants
from benchmarks.running_count import embedded, on_spark, records

SECONDS = {"tiny": 6, "small": 180, "full": 3600}
LOOKS = 360
"""How often the memory is looked at: in an hour, every ten seconds."""
POINTS = 6

EPOCHS_PER_S = 4
N_RECORDS, N_KEYS = 100, 10_000
SNAPSHOT_EVERY = 40
BATCH_S = 10
"""How often Spark makes a batch."""

SERVICE, ON_SPARK, SPARK = "two processes", "two tasks of Spark", "Spark, its own count"
JVM = "the JVM that feeds it"

Stop = threading.Event


def in_processes(folder: Path, stop: Stop) -> None:
    """Send epochs at a pace, read each, and have it forgotten."""
    place = folder / "checkpoint"
    with embedded(checkpoint=str(place), snapshot_every=SNAPSHOT_EVERY) as service:
        input, output = service.input("records"), service.output("counts")
        epoch = 0
        while not stop.wait(1 / EPOCHS_PER_S):
            input.send(records(N_RECORDS, N_KEYS, epoch))
            input.advance_to(epoch + 1)
            found = output.read(epoch, after=epoch - 1)
            assert found, f"epoch {epoch} came to nothing"
            output.discard(epoch)
            epoch += 1


def on_tasks(folder: Path, stop: Stop) -> None:
    """Have a stream of Spark feed the service, and another read it."""
    from pointstamp.spark import session

    with ExitStack() as held:
        spark = held.enter_context(session("local[4]", workers=3))
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        service = held.enter_context(
            on_spark(spark, checkpoint=str(folder / "service"), snapshot_every=4)
        )
        fed = (
            _arriving(spark)
            .writeStream.format("pointstamp")
            .option("checkpointLocation", str(folder / "in"))
            .trigger(processingTime=f"{BATCH_S} seconds")
            .start()
        )
        held.callback(fed.stop)
        read = (
            spark.readStream.format("pointstamp")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / "out"))
            .trigger(processingTime=f"{BATCH_S} seconds")
            .start()
        )
        held.callback(read.stop)
        while not stop.wait(1):
            assert service.status().end >= 0
            for query in (fed, read):
                assert query.isActive, query.exception()


def in_spark(folder: Path, stop: Stop) -> None:
    """The same count, kept by Spark."""
    from pointstamp.spark import session

    with ExitStack() as held:
        spark = held.enter_context(session("local[2]", workers=2))
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        query = (
            _arriving(spark)
            .groupBy("key")
            .count()
            .writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(folder / "query"))
            .trigger(processingTime=f"{BATCH_S} seconds")
            .start()
        )
        held.callback(query.stop)
        while not stop.wait(1):
            assert query.isActive, query.exception()


def _arriving(spark: Any) -> Any:
    rate = spark.readStream.format("rate").option("rowsPerSecond", N_RECORDS * EPOCHS_PER_S).load()
    return rate.selectExpr(f"pmod(hash(value), {N_KEYS}) cast_key").selectExpr(
        "cast(cast_key as long) as key"
    )


PROGRAMS: dict[str, Callable[[Path, Stop], None]] = {
    SERVICE: in_processes,
    ON_SPARK: on_tasks,
    SPARK: in_spark,
}


# One program, and who looks at its memory.


def run(program: str, seconds: float, samples: Path) -> None:
    """Run one of the programs for so long, and write down the memory of all its processes."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="pointstamp-soak-") as folder:
        looking = threading.Thread(target=_look, args=(seconds, samples, stop), daemon=True)
        looking.start()
        try:
            PROGRAMS[program](Path(folder), stop)
        finally:
            stop.set()
            looking.join()


def _look(seconds: float, samples: Path, stop: Stop) -> None:
    """A line for each look: how long it runs, and (name, resident bytes) by process."""
    began = monotonic()
    with samples.open("w", buffering=1) as lines:
        while (now := monotonic() - began) < seconds:
            if stop.wait(min(seconds / LOOKS, seconds - now)):
                return
            found = {pid: seen for pid in (os.getpid(), *descendants()) if (seen := _seen(pid))}
            lines.write(json.dumps({"s": monotonic() - began, "processes": found}) + "\n")
    stop.set()


def _seen(pid: int) -> tuple[str, int] | None:
    """Name and resident bytes of a process; None if it is gone."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return None
    return name, pages * os.sysconf("SC_PAGE_SIZE")


# All of them, and what comes out.


def soak(seconds: float, folder: Path) -> dict[str, Reading]:
    """Run all programs at once; the readings of all cases."""
    with ExitStack() as held:
        running = [
            held.enter_context(_started(program, seconds, folder / _file(program)))
            for program in PROGRAMS
        ]
        for process in running:
            if process.wait() != 0:
                raise RuntimeError(f"a program of the soak ended with {process.returncode}")
    return readings(seconds, folder)


@contextmanager
def _started(program: str, seconds: float, samples: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = ["--run", program, str(seconds), str(samples)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.service_soak", *command])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()


def _file(program: str) -> str:
    return f"{program.replace(' ', '_').replace(',', '')}.jsonl"


def readings(seconds: float, folder: Path) -> dict[str, Reading]:
    """By case: MiB at each look of the sixth of the time that ends there."""
    found: dict[str, Reading] = {}
    for program in PROGRAMS:
        looks = [json.loads(line) for line in (folder / _file(program)).read_text().splitlines()]
        for who, at, of_jvm in _rows(program):
            mib = [_mib(look, _lasting(looks), of_jvm) for look in looks]
            for n in range(1, POINTS + 1):
                until = seconds * n / POINTS
                part = [
                    value
                    for look, value in zip(looks, mib, strict=True)
                    if until - seconds / POINTS < look["s"] <= until + 1
                ]
                case = Case(who, with_others, at={**at, "seconds": round(until)})
                if part:
                    peak = round(max(part) * 2**20)
                    slope = _slope([(look["s"], v) for look, v in zip(looks, mib, strict=True)])
                    found[case.key] = Reading(part, [peak], details={"MiB per hour": slope})
    return found


def _lasting(looks: list[Any]) -> set[str]:
    """The processes that are there from a twelfth of the time on to the end.

    Those that Spark has for a task or a batch come and go.
    """
    late = looks[len(looks) // (2 * POINTS) :]
    return set.intersection(*(set(look["processes"]) for look in late))


def _mib(look: Any, lasting: set[str], of_jvm: bool | None) -> float:
    return sum(
        n_bytes / 2**20
        for pid, (name, n_bytes) in look["processes"].items()
        if pid in lasting and of_jvm in (None, name == "java")
    )


def _slope(points: list[tuple[float, float]]) -> float:
    """MiB per hour by least squares, of the second half."""
    late = points[len(points) // 2 :]
    middle_s, middle = (sum(values) / len(late) for values in zip(*late, strict=True))
    spread = sum((s - middle_s) ** 2 for s, _ in late)
    return (
        3600 * sum((s - middle_s) * (mib - middle) for s, mib in late) / spread if spread else 0.0
    )


def _rows(program: str) -> list[tuple[str, dict[str, int | str], bool | None]]:
    """Who, where, and whether it is the JVM's memory; None for all."""
    if program == SPARK:
        return [(SPARK, {}, None)]
    ours: tuple[str, dict[str, int | str], bool | None] = (OURS, {"service": program}, False)
    return [ours] if program == SERVICE else [ours, (JVM, {}, True)]


def cases(size: Size) -> list[Case]:
    """A point for each sixth of the time."""
    return [
        Case(who, with_others, at={**at, "seconds": round(SECONDS[size] * n / POINTS)})
        for program in PROGRAMS
        for who, at, _ in _rows(program)
        for n in range(1, POINTS + 1)
    ]


def together(size: Size) -> Mapping[str, Reading]:
    """Run it for as long as the size says."""
    with tempfile.TemporaryDirectory(prefix="pointstamp-soak-") as folder:
        return soak(SECONDS[size], Path(folder))


BENCHMARK = Benchmark(
    name="service_soak",
    title="The memory of a service in an hour",
    about="Resident memory of the long-lived processes: for ours the program that holds the "
    "service and the two workers (on Spark, also the Python processes of a sink and a source, "
    "about ten; the JVM has a row of its own), "
    f"for Spark the JVM and its Python. {EPOCHS_PER_S} epochs of {N_RECORDS} records per second, "
    f"or as many records in a batch every {BATCH_S} s if Spark feeds the service; {N_KEYS:,} keys; "
    "with checkpoint and snapshots, and readers that discard what they have read. Memory is "
    "sampled every ten seconds; a row covers the ten minutes before it. It runs for an hour, and "
    "so only when named.",
    quantity=Quantity("MiB"),
    cases=cases,
    baselines=(SPARK,),
    floors=(JVM,),
    together=together,
    when_named=True,
    axis="seconds",
    growth=(Target({"service": SERVICE, "seconds": 3600}, 1.05),),
)


def main(arguments: list[str]) -> None:
    """Run for so many seconds, or one of the programs alone; or keep what a run has left."""
    if arguments[0] == "--run":
        run(arguments[1], float(arguments[2]), Path(arguments[3]))
        return
    if arguments[0] == "--keep":
        found = readings(SECONDS["full"], Path(arguments[1]))
        measure(replace(BENCHMARK, together=lambda size: found), "full", 1, print).save()
        return
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for key, reading in soak(float(arguments[0]), folder).items():
        print(f"{key:60} {median(reading.seconds):8.1f} MiB", reading.details)


if __name__ == "__main__":
    main(sys.argv[1:])
