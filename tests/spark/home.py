"""Makes a home of Spark whose processes start in half the time.

    python -m tests.spark.home FOLDER

It is the one that a session of this machine has (`pointstamp.spark.spark_home`), from which nothing
of Python is imported, with one thing more:

- `classes.jsa` is what its Java writes down of the ten thousand classes that Spark has it load
  (class data sharing), to take them as they are. Javas that cannot use it, since they are of
  another version, or have other libraries, do as without it.

`make test` has that folder made once; `quick_to_start` in `conftest` has all tests use it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

from pointstamp.errors import SparkSetupError
from pointstamp.spark import session, spark_home

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
"""The collector has to be the one of those that use the file."""

ENDS_S = 600


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
    folder.mkdir(parents=True)
    spark_home.link(Path(pyspark.__file__).parent, folder)
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
