"""A home of Spark from which workers import PySpark as it is installed here, and so compiled.

Spark has its workers import PySpark from an archive of sources in its home,
`python/lib/pyspark.zip`. Nothing can be kept beside them, so each process that Spark starts
compiles what it imports: thousands of lines. A stream that is written to a service waits for five
such processes, one after the other. Where PySpark is installed for the Python that runs us, it is
there a second time, and compiled. So a session of this machine has a home that is PySpark's by
links, but for archives that are empty. One that was prepared (`prepared_home`) is taken where it is
of the PySpark that is installed.

Nothing here imports PySpark.
"""

from __future__ import annotations

import atexit
import os
import site
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from pointstamp.formats.owned_folder import owned_folder

ARCHIVES = Path("python", "lib")
"""Where they are in a home."""

PREFIX = "pointstamp-spark-"
"""Of the names of homes. Those of programs that were killed are removed when the next is made."""

ARCHIVED = ("pyspark", "py4j")
"""What is in the archives."""

PREPARED = Path(sys.prefix, "share", "pointstamp-spark")
"""Where a home is that was prepared."""

CLASSES = "classes.jsa"
"""In it, the classes that Java has written down."""

OF = "of"
"""In it, the `identity` of the PySpark that it was made of."""


@cache
def of_installed() -> Path | None:
    """The home, which lasts as long as this program; None where workers may need the archives.

    They do where another Python, started anew, would not find the modules that we have.
    """
    home = folder_of_installed()
    if home is None:
        return None
    if is_prepared(home):
        return PREPARED
    folder = owned_folder(PREFIX)
    atexit.register(folder.remove)
    link(home, folder.path)
    return folder.path


def java_options(home: Path) -> str:
    """What has Java take the classes that are written down in a home, behind other options."""
    classes = str(home / CLASSES)
    if not os.path.exists(classes) or len(classes.split()) > 1:  # noqa: PTH110  (options are words)
        return ""
    # Quietly, because one that cannot use it would say so on its standard output.
    return f" -XX:SharedArchiveFile={classes} -Xlog:disable"


def is_prepared(installed: Path) -> bool:
    """Whether there is a home that was made of this very PySpark."""
    try:
        return (PREPARED / OF).read_text() == identity(installed)
    except OSError:
        return False


def identity(installed: Path) -> str:
    """By what one PySpark differs from another: where it is, and its version."""
    return f"{installed}\n{(installed / 'version.py').read_text()}"


def folder_of_installed() -> Path | None:
    """PySpark's folder; None where its workers may need the archives."""
    places = (*site.getsitepackages(), site.getusersitepackages())
    found = [find_spec(name) for name in ARCHIVED]
    folders = [Path(spec.origin).resolve().parent for spec in found if spec and spec.origin]
    if os.name != "posix" or len(folders) < len(ARCHIVED):
        return None
    home = folders[0]
    is_found = {folder.parent for folder in folders} <= {Path(place).resolve() for place in places}
    return home if is_found and (home / ARCHIVES).is_dir() else None


def link(home: Path, folder: Path) -> None:
    """Make `folder`, which is there, one more home of the same Spark, with empty archives."""
    for entry in home.iterdir():
        if entry.name != ARCHIVES.parts[0]:
            (folder / entry.name).symlink_to(entry)
    (folder / ARCHIVES).mkdir(parents=True)
    for archive in (home / ARCHIVES).glob("*.zip"):
        # Spark looks for data sources of Python only where these files are.
        ZipFile(folder / ARCHIVES / archive.name, "w").close()
