"""`install_on_executors`: brings this package to the executors of a session that lack it.

Spark can hand an archive to every executor, those that start later included, and
unpacks it into a folder that is on the path of the Python of each task. An archive of
the package that unpacks under the package's own name is therefore all that is needed;
unlike a zip that Python imports from, it may hold compiled libraries.

What executors have is asked of them by a function that travels by value, since they
cannot import it, and as a plain UDF of Python objects, since they may lack Arrow too.
Which of them answer is up to Spark's scheduler: as a rule, when nothing else runs, all
that are there.

What cannot be installed is said instead: libraries of others, and another Python.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from pointstamp import compiled
from pointstamp.errors import SparkSetupError
from pointstamp.formats.owned_folder import owned_folder
from pointstamp.spark.call_sites import call_site, called_at
from pointstamp.spark.known_schemas import is_of_pipeline
from pointstamp.spark.session import check_session, context_of, reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("cloudpickle", "numpy", "pyarrow")
"""What a worker imports that is not ours, and not of Python."""

FIRST_IMPORT = "pointstamp.spark.task"
"""What a task of `run` imports first."""

PACKAGE = Path(__file__).resolve().parent.parent
N_ASKED = 1024
"""In how many rows we ask; Spark makes of them a task per slot."""

_SUFFIXES = {".py", ".pxd", ".pyx", ".typed"}
_SAME_MOMENT = (1980, 1, 1, 0, 0, 0)
"""When all files were written, so that the same files are the same archive."""

_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", re.DOTALL)


@dataclass(frozen=True)
class Found:
    """What the Python of one machine has."""

    host: str
    executable: str
    platform: str
    """What has to be the same for compiled libraries to load."""
    missing: tuple[str, ...]
    """Of the libraries that are needed."""
    where: str
    """The folder of this package; empty where there is none."""
    digest: str
    """Of its sources, whichever version it calls itself."""
    trouble: str
    """Why it cannot be imported; empty where it can, or that was not tried."""

    def __str__(self) -> str:
        return f"{self.executable} on {self.host}"


def install_on_executors(spark: SparkSession) -> bool:
    """Install this package on the executors, if they lack it or have another version.

    Call it before the first `run` of a session: a Python process that has imported
    another version keeps that until it ends. What a task finds is this program's version,
    also in executors that start later, if the session was sent no other version before:
    of two Spark unpacks either. It works for classic sessions and for Spark Connect.

    Parameters
    ----------
    spark : SparkSession
        It need not be idle, but an executor that is busy is not asked.

    Returns
    -------
    bool
        Whether anything was sent: nothing is where all executors have the same sources.

    Raises
    ------
    SparkSetupError
        When executors lack the libraries that the package needs, have a Python of another
        version than this one, or cannot import what was sent; the message says which
        machines, and what to install.

    Notes
    -----
    It costs a job of Spark, and another where something is sent: less than a megabyte of
    sources, or three with compiled libraries, which go where all executors have the same
    Python and C library as this program.

    Examples
    --------
    ::

        spark = pointstamp.spark.session("spark://host:7077")
        pointstamp.spark.install_on_executors(spark)
        pointstamp.spark.run(triangles, {"edges": edges}, "a long, b long, c long", workers=8)
    """
    check_session(spark)
    with called_at(spark, call_site("install_on_executors")):
        return _installed(spark)


def _installed(spark: SparkSession) -> bool:
    mine = examined_here()
    found = _ask(spark)
    check_libraries(found)
    if all(one.digest == mine.digest for one in found):
        return False
    alike = all(one.platform == mine.platform for one in found)
    _send(spark, libraries=alike and compiled.build_info() == "compiled")
    check_arrival(_ask(spark, FIRST_IMPORT), mine.digest)
    return True


def check_libraries(found: Iterable[Found]) -> None:
    """Refuse executors that lack what cannot be installed."""
    lacking = {one.missing for one in found if one.missing}
    if lacking:
        missing = ", ".join(sorted({name for names in lacking for name in names}))
        workers = "; ".join(sorted(str(one) for one in found if one.missing))
        raise SparkSetupError(
            f"executors lack {missing} ({workers}): Pointstamp can be installed on them, the "
            f"libraries that it needs cannot. Install {', '.join(NEEDED)} into the Python of the "
            f"executors, or give them another one (PYSPARK_PYTHON, spark.pyspark.python)"
        )


_asked: WeakSet[SparkSession] = WeakSet()
"""The sessions whose executors have what a worker imports."""


def check_executors(spark: SparkSession) -> None:
    """Refuse executors whose Python cannot run a worker, once for each session.

    Where they are this machine's and have the Python of this program there is nothing to ask.
    Elsewhere it costs a small job of Spark.

    Raises
    ------
    SparkSetupError
        When they have another version of Python, or lack libraries or Pointstamp; says which.
    """
    if spark in _asked or _is_ours(spark):
        return
    found = _ask(spark)
    check_libraries(found)
    lacking = [str(one) for one in found if not one.where]
    if lacking:
        raise SparkSetupError(
            f"executors lack pointstamp ({'; '.join(lacking)}): "
            "pointstamp.spark.install_on_executors(spark) brings it to them"
        )
    _asked.add(spark)


def _is_ours(spark: SparkSession) -> bool:
    """Whether tasks run on this machine, with the Python that runs us."""
    context = context_of(spark)
    if context is None or not (context.master or "").startswith("local"):
        return False
    return shutil.which(context.pythonExec) == sys.executable


def check_arrival(found: Iterable[Found], digest: str) -> None:
    """Refuse executors that cannot use what was sent."""
    for one in found:
        if not one.where:
            raise SparkSetupError(
                f"what was installed did not reach {one}: a classic session does not get what is "
                f"added to it where spark.sql.artifact.isolation.enabled is true; set it to false"
            )
        if one.digest != digest:
            raise SparkSetupError(
                f"{one} uses the pointstamp in {one.where} and not the one that was installed, for "
                f"it had imported that one before: install before the first run of "
                f"a session, or set "
                f"spark.python.worker.reuse to false"
            )
        if one.trouble:
            raise SparkSetupError(
                f"{one} was sent pointstamp and cannot import it: {one.trouble}; see that it "
                f"has the versions of {', '.join(NEEDED)} that this program has"
            )


def examined_here() -> Found:
    """What the Python has that runs us."""
    return _found(_examiner()(NEEDED, "", str(PACKAGE)))


def _found(answer: str) -> Found:
    found = json.loads(answer)
    return Found(**{**found, "missing": tuple(found["missing"])})


def _ask(spark: SparkSession, import_: str = "") -> list[Found]:
    """What the executors have; they import `import_`, if that is said."""
    from pyspark.sql.functions import udf

    examine, answers = _examiner(), []  # type: ignore[var-annotated]

    def answer(_: int) -> str:
        if not answers:  # once per task
            answers.append(examine(NEEDED, import_))
        return str(answers[0])

    try:
        asked = udf(answer, "string", useArrow=False)
        rows = spark.range(N_ASKED).select(asked("id").alias("answer")).collect()
    except Exception as cause:
        raise _cannot_ask(str(cause)) from cause
    return [_found(answer) for answer in sorted({row.answer for row in rows})]


def _cannot_ask(text: str) -> SparkSetupError:
    versions = _OTHER_PYTHON.search(text)
    if versions is not None:
        theirs, ours = versions.groups()
        return SparkSetupError(
            f"the executors run Python {theirs}, and this program Python {ours}: functions cannot "
            f"travel between them. Run both with the same minor version (PYSPARK_PYTHON says which "
            f"Python the executors take)"
        )
    if is_of_pipeline(text):
        return SparkSetupError(
            "the functions of a declarative pipeline run no jobs, and this needs one, as count, "
            "bfs, validate and maintain do: make it a table by what is lazy, such as find"
        )
    return SparkSetupError(
        f"the executors cannot be asked what they have: {reason(text)}; see that Spark can start "
        f"their Python (PYSPARK_PYTHON, spark.pyspark.python)"
    )


def _examiner() -> Callable[..., str]:
    """A function that travels by value, and needs nothing but Python where it arrives."""

    def examine(needed: Sequence[str], import_: str, package: str = "") -> str:
        import hashlib
        import importlib
        import importlib.util
        import json
        import platform
        import socket
        import sys
        import sysconfig
        from pathlib import Path

        def folder(name: str) -> str:
            try:
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                return ""
            return "" if spec is None else next(iter(spec.submodule_search_locations or [""]))

        def digest(where: str) -> str:
            hashed = hashlib.sha256()
            for path in sorted(Path(where).rglob("*.py")):
                hashed.update(f"{path.relative_to(where)}\0".encode() + path.read_bytes())
            return hashed.hexdigest()

        def trouble() -> str:
            try:
                importlib.import_module(import_)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is what they report)
                return f"{type(error).__name__}: {error}"
            return ""

        where = package or folder("pointstamp")
        tag, libc = sys.implementation.cache_tag, " ".join(platform.libc_ver())
        found = {
            "host": socket.gethostname(),
            "executable": sys.executable,
            "platform": f"{tag} {sysconfig.get_platform()} {libc}",
            "missing": [name for name in needed if not folder(name)],
            "where": where,
            "digest": digest(where) if where else "",
            "trouble": trouble() if import_ else "",
        }
        return json.dumps(found, sort_keys=True)

    return examine


def _send(spark: SparkSession, *, libraries: bool) -> None:
    with _folder(spark) as folder:
        archive = pack(folder, libraries=libraries)
        # What follows the # is the name of the folder that it is unpacked into.
        spark.addArtifacts(f"{archive}#{PACKAGE.name}", archive=True)


@contextmanager
def _folder(spark: SparkSession) -> Iterator[Path]:
    """Where the archive lies: as long as executors may fetch it from there.

    Those of a classic session fetch from this machine, whenever they start, so it goes to
    the session's own folder, which Spark removes. Spark Connect has it uploaded at once.
    """
    if context_of(spark) is not None:
        from pyspark import SparkFiles

        yield Path(SparkFiles.getRootDirectory())
    else:
        with owned_folder("pointstamp-install-") as folder:
            yield folder


def pack(folder: Path, *, libraries: bool) -> Path:
    """An archive of this package in `folder`, named by what is in it."""
    files = {
        path.relative_to(PACKAGE): path.read_bytes()
        for path in installed_files(libraries=libraries)
    }
    hashed = hashlib.sha256()
    for name, data in files.items():
        hashed.update(f"{name}\0{len(data)}\0".encode() + data)
    archive = folder / f"{PACKAGE.name}-{hashed.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(str(name), _SAME_MOMENT), data, zipfile.ZIP_DEFLATED)
    return archive


def installed_files(*, libraries: bool) -> list[Path]:
    """The files of this package that a worker needs: sources, and what they were compiled to."""
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in _SUFFIXES]
    built = [*compiled.libraries(PACKAGE), PACKAGE / compiled.DIGEST] if libraries else []
    return sorted([*sources, *built])
