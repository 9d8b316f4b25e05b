"""Has a Java write down the classes that Spark had it load: others then start in half the time.

    python -m tests.spark.archive FILE

A Java that Spark starts spends most of its first seconds on reading and checking some
ten thousand classes. With a file of them (class data sharing) it takes them as they are.
`make test` has that file made once; Javas that cannot use it, since they are of another
version, or have other libraries, do as without it. See `quick_to_start` in `conftest`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pointstamp.errors import SparkSetupError
from pointstamp.spark import session

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
    """Write the file, whole or not at all; where there is no Spark nobody needs it."""
    path = Path(sys.argv[1])
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    try:
        write(new)
    except SparkSetupError as error:
        print(f"no archive of Spark's classes is made: {error}", file=sys.stderr)
    if new.exists():
        new.replace(path)


if __name__ == "__main__":
    main()
