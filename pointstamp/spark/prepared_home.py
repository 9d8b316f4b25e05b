"""A home of Spark whose Java starts in half the time, made once for a Python and its packages.

It is the home of `spark_home`, in a place that lasts, and in it what a Java writes down of the ten
thousand classes that Spark has it load (class data sharing), for others to take as they are. Javas
that cannot use that, since they are of another version or have other libraries, do as without.

Nothing here imports PySpark before it is used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pointstamp.errors import SparkSetupError
from pointstamp.spark import spark_home

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
"""What has it done soon, as all that it runs is short; those that use it may have others."""

ENDS_S = 600
"""How long Java may take to write its classes down."""


def prepare() -> Path:
    """Have the sessions that `session` starts on this machine do so in half the time, from now on.

    It takes half a minute on two cores and 180 MB beside the packages of this Python, and is to be
    done again when PySpark or Java is another: until then sessions start as without. Where
    SPARK_HOME names a home, that is taken.

    Returns
    -------
    pathlib.Path
        The folder that was made, in `sys.prefix`; to remove it takes everything back.

    Raises
    ------
    SparkSetupError
        If there is no PySpark or no Java, or the folder cannot be written.

    Examples
    --------
    ::

        pointstamp.spark.prepare()
        with pointstamp.spark.session() as spark:  # after half as long
            ...
    """
    # In a process of its own, as a program has one Java, which writes when it ends.
    program = f"from {__name__} import make; make()"
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if made.returncode:
        cause = [line for line in made.stderr.splitlines() if line.strip()][-1:]
        raise SparkSetupError(
            f"{spark_home.PREPARED} is not made, and sessions of Spark start as without it: "
            f"{cause[0] if cause else 'it ended without a word'}"
        )
    return spark_home.PREPARED


def make() -> None:
    """Make the home where sessions look for it, in place of what is there."""
    folder = spark_home.PREPARED
    installed = spark_home.folder_of_installed()
    if installed is None:
        raise SparkSetupError("PySpark is not installed where workers would find it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spark_home.link(installed, folder)
    # Where it is decides which classes are the same ones.
    os.environ["SPARK_HOME"] = str(folder)
    new = folder / "classes.new"
    _write(new)
    new.replace(folder / spark_home.CLASSES)
    (folder / spark_home.OF).write_text(spark_home.identity(installed))


def _write(path: Path) -> None:
    """Run a session that does a bit, and have its Java write `path` at its end."""
    from pointstamp.spark.session import session

    options = f"{OPTIONS} -XX:ArchiveClassesAtExit={path}"
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--conf 'spark.driver.defaultJavaOptions={options}' pyspark-shell"
    )
    with session("local[2]", workers=2) as spark, tempfile.TemporaryDirectory() as folder:
        gateway: Any = spark.sparkContext._gateway
        table = str(Path(folder, "table"))
        spark.range(9).mapInArrow(lambda batches: batches, "id long").write.parquet(table)
        spark.read.parquet(table).count()
    gateway.proc.stdin.close()  # which is how Java learns that it is not needed any more
    gateway.proc.wait(ENDS_S)
