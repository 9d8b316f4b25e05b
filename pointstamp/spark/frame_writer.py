"""The writer of a DataFrame that `run` gives.

What writes all of a result needs no shuffle behind the workers: they hand their records to the
tasks' writers, in the stage that they are, which saves a stage and a pass through Python. `run`
cannot do so for all that is made of a result, as Spark allows no barrier stage of which only some
is taken, or that is united with others. A write of files is a job of all partitions, whatever its
options; it may sort in its tasks, or shuffle first. Of other sinks that is not known (JDBC's
coalesces partitions), so they get the DataFrame as it is; as all do on a cluster, where executors
are lost: Spark retries a barrier stage only if its output is shuffled.

PySpark hands the settings of a writer to one of Java's, `_jwrite`, and asks it to write. What
stands in its place here hands them on, and keeps them for a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.spark.call_sites import call_site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

    from pointstamp.spark.actions import Actions

FILES = {"csv", "json", "orc", "parquet", "text", "xml"}
"""Formats of files, and the methods that write them."""

_WRITES = FILES | {"insertInto", "jdbc", "save", "saveAsTable"}

DEFAULT_FORMAT = "spark.sql.sources.default"


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
                whole = self._writes_files(name)
                java = self._of(self._actions.whole() if whole else self._frame)
                getattr(java, name)(*args)

        return write if name in _WRITES else setting

    def _writes_files(self, method: str) -> bool:
        if method != "save":
            return method in FILES
        of_session = self._frame.sparkSession.conf.get(DEFAULT_FORMAT, "")
        formats = [of_session, *(args[0] for name, args in self._settings if name == "format")]
        return str(formats[-1]).lower() in FILES

    def _of(self, frame: Any) -> Any:
        """Java's writer of a DataFrame, with the same settings."""
        java = frame._jdf.write()
        for name, args in self._settings:
            java = getattr(java, name)(*args)
        return java
