"""Makes a home of Spark whose processes start in half the time.

    python -m tests.spark.home FOLDER

It is the one that PySpark comes with, by links, but for two things:

- `python/lib/pyspark.zip`, of which executors import, has sources alone; since nothing can be
  kept beside them, each process would compile thousands of lines again. Here they are compiled.
- `classes.jsa` is what its Java writes down of the ten thousand classes that Spark has it load
  (class data sharing), to take them as they are. Javas that cannot use it, since they are of
  another version, or have other libraries, do as without it.

`make test` has that folder made once; `quick_to_start` in `conftest` has all tests use it.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZipFile

import pyspark

from pointstamp.errors import SparkSetupError
from pointstamp.spark import session

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
"""The collector has to be the one of those that use the file."""

ENDS_S = 600


def link(folder: Path) -> None:
    """Make `folder` the home of Spark, its archives of Python's modules with compiled ones."""
    home = Path(pyspark.__file__).parent
    archives = Path("python", "lib")
    (folder / archives).mkdir(parents=True)
    for inside in (Path(), archives.parent):
        for entry in (home / inside).iterdir():
            if entry.relative_to(home) not in (archives, *archives.parents):
                (folder / inside / entry.name).symlink_to(entry)
    for archive in (home / archives).iterdir():
        with (
            tempfile.TemporaryDirectory() as unpacked,
            ZipFile(archive) as found,
            ZipFile(folder / archives / archive.name, "w") as made,
        ):
            found.extractall(unpacked)
            compileall.compile_dir(
                unpacked,
                quiet=2,
                rx=re.compile(r"/tests/"),
                legacy=True,
                stripdir=unpacked,
                prependdir=folder / archives / archive.name,
                invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            )
            for path in sorted(Path(unpacked).rglob("*")):
                made.write(path, path.relative_to(unpacked))


def write(path: Path) -> None:
    """Run a session that does a bit, and have its Java write `path` at its end."""
    options = f"{OPTIONS} -XX:ArchiveClassesAtExit={path}"
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--conf 'spark.driver.defaultJavaOptions={options}' pyspark-shell"
    )
    with session("local[2]", workers=2) as spark, tempfile.TemporaryDirectory() as folder:
        java = spark.sparkContext._gateway.proc
        table = str(Path(folder, "table"))
        spark.range(9).mapInArrow(lambda batches: batches, "id long").write.parquet(table)
        assert spark.read.parquet(table).count() == 9
    java.stdin.close()  # which is how it learns that nobody needs it any more
    java.wait(ENDS_S)


def main() -> None:
    """Make the folder; where there is no Spark nobody needs it."""
    folder = Path(sys.argv[1]).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    link(folder)
    # Where it is decides which classes are the same ones.
    os.environ["SPARK_HOME"] = str(folder)
    new = folder / "classes.new"
    try:
        write(new)
    except SparkSetupError as error:
        print(f"no archive of Spark's classes is made: {error}", file=sys.stderr)
    if new.exists():
        new.replace(folder / "classes.jsa")


if __name__ == "__main__":
    main()
