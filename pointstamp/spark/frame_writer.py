"""The writer of a DataFrame that `run` gives.

What writes all of a result needs no shuffle behind the workers: they hand their records to the
tasks' writers, in the stage that they are, which saves a stage and a pass through Python. `run`
cannot do so for all that is made of a result, as Spark allows no barrier stage of which only some
is taken, or that is united with others. A write of files is a job of all partitions, whatever its
options; it may sort in its tasks, or shuffle first. Of other sinks that is not known (JDBC's
coalesces partitions), so they get the DataFrame as it is. So do writes that overwrite: Spark first
removes what is there, and then runs the last stage, so the workers have to be in another one.
Spark retries no barrier stage whose output is not shuffled, so all this is done where it retries
none.

PySpark hands the settings of a writer to one of Java's, `_jwrite`, and asks it to write. What
stands in its place here hands them on, and keeps them for a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pointstamp.spark.call_sites import call_site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

    from pointstamp.spark.actions import Actions

FILES = {"csv", "json", "orc", "parquet", "text", "xml"}
"""Formats of files, and the methods that write them."""

_WRITES = FILES | {"insertInto", "jdbc", "save", "saveAsTable"}

DEFAULT_FORMAT = "spark.sql.sources.default"

GIVEN_UP_S = 5.0
"""How long Spark may take to give up a write that is interrupted, and remove its files."""

RETRY_S = 0.05


def writer_of(frame: DataFrame, actions: Actions) -> DataFrameWriter:
    """The writer of a DataFrame of a classic session, whose writes are actions."""
    from pyspark.sql import DataFrameWriter

    writer: Any = DataFrameWriter(actions.whole())
    writer._jwrite = _WriterOfJava(writer._jwrite, frame, actions)
    found: DataFrameWriter = writer
    return found


class _WriterOfJava:
    """In place of Java's writer: its methods, of which those that write choose a DataFrame.

    Parameters
    ----------
    java
        A writer of Java's, which says what is wrong with a setting.
    frame : DataFrame
    actions : Actions
        Of `frame`.
    """

    def __init__(self, java: Any, frame: DataFrame, actions: Actions) -> None:
        self._java = java
        self._frame = frame
        self._actions = actions
        self._settings: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def setting(*args: Any) -> _WriterOfJava:
            self._java = getattr(self._java, name)(*args)
            self._settings.append((name, args))
            return self

        def write(*args: Any) -> None:
            with self._actions.running(call_site(name)):
                if not self._adds_files(name):
                    getattr(self._of(self._frame), name)(*args)
                    return
                path = args[0] if args else self._setting("option", "path")
                with _without_trace(self._frame.sparkSession, path):
                    getattr(self._of(self._actions.whole()), name)(*args)

        return write if name in _WRITES else setting

    def _adds_files(self, method: str) -> bool:
        """Whether a method writes files beside what is there, if anything is."""
        if str(self._setting("mode")).lower() == "overwrite":
            return False
        if method == "save":
            conf = self._frame.sparkSession.conf
            method = self._setting("format") or conf.get(DEFAULT_FORMAT, None) or ""
        return method.lower() in FILES

    def _setting(self, *which: str) -> Any:
        """What was said last of a setting; None if nothing was."""
        found = [(name, *args) for name, args in self._settings]
        return next((said[-1] for said in reversed(found) if _lower(said[:-1]) == which), None)

    def _of(self, frame: Any) -> Any:
        """Java's writer of a DataFrame, with the same settings."""
        java = frame._jdf.write()
        for name, args in self._settings:
            java = getattr(java, name)(*args)
        return java


def _lower(names: Iterable[Any]) -> tuple[str, ...]:
    """Names of settings, whose case does not count."""
    return tuple(str(name).lower() for name in names)


@contextmanager
def _without_trace(spark: Any, path: str | None) -> Iterator[None]:
    """Remove the folder that a write has made, and nothing else, if it fails.

    It is made before the workers begin, and one that is there is refused the next time.
    """
    if path is None:
        yield
        return
    java, was_there = spark._jvm.org.apache.hadoop.fs.Path(path), True
    with suppress(Exception):  # of a file system that is not there, which Spark says
        files = java.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        was_there = files.exists(java)
    try:
        yield
    except BaseException as error:
        if not was_there:
            # What is interrupted here Spark has still to give up.
            _remove_empty(files, java, 0.0 if isinstance(error, Exception) else GIVEN_UP_S)
        raise


def _remove_empty(files: Any, folder: Any, within_s: float) -> None:
    """Remove a folder once nothing is in it; leave one that has something in it then."""
    until = monotonic() + within_s
    while True:
        with suppress(Exception):  # Java's, of one with something in it
            files.delete(folder, False)
            return
        if monotonic() >= until:
            return
        sleep(RETRY_S)
