"""Builds the wheels of a release into `dist/`: a pure one, and compiled ones for each Python.

    .venv/bin/python scripts/wheels.py [FOLDER]

ziglang compiles for the machines of `TARGETS`, whichever this one is, against the glibc of 2014,
and auditwheel checks that the wheels need nothing newer, and names them so. Which Pythons: those
of `VERSIONS` that are on the PATH, or that pyenv or uv have, with their headers. `uv build` makes
each wheel in an environment of its own, so nothing but `make wheels` has to be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

TARGETS = {"x86_64": "x86_64", "aarch64": "generic"}
"""The machines, and the least processor of each: ziglang compiles for that of this machine
where it is not told."""

HAS_HEADERS = (
    "import sys, sysconfig, pathlib;"
    "print('%d.%d' % sys.version_info[:2]"
    " if pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists() else '')"
)


def pythons() -> dict[str, Path]:
    """The Pythons at hand, by version."""
    found = {}
    for version in VERSIONS:
        candidates = [
            *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
            *Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"),
            Path(shutil.which(f"python{version}") or "/nonexistent"),
        ]
        for python in candidates:
            if python.exists() and said_by(python) == version:
                found[version] = python
                break
    return found


def said_by(python: Path) -> str:
    """The version of a Python that starts and has its headers; else nothing."""
    ran = subprocess.run([python, "-c", HAS_HEADERS], capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def build(python: Path, folder: Path, **environment: str) -> Path:
    """One wheel, of the sources as they are here."""
    run("uv", "build", "--wheel", "--quiet", "--no-config", "--python", str(python),
        "--out-dir", str(folder), str(ROOT), **environment)  # fmt: skip
    return max(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def run(program: str, *arguments: str, **environment: str) -> None:
    """Run a program of this environment, or of the PATH; raises if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run(
        [program, *arguments], env={**os.environ, "PATH": path, **environment}, check=True
    )


def for_machine(machine: str, version: str) -> dict[str, str]:
    """What the environment says to compile for a machine.

    Headers of Python are the same on all that have words of 64 bits.
    """
    zig = (
        f"{sys.executable} -m ziglang cc -target {machine}-linux-gnu.2.17 -mcpu={TARGETS[machine]}"
    )
    return {
        "CC": zig,
        "LDSHARED": f"{zig} -shared",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version.replace('.', '')}-{machine}-linux-gnu.so",
    }


def main(folder: Path) -> None:
    """Build all wheels into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(build(Path(sys.executable), folder, POINTSTAMP_COMPILED="0").name, flush=True)
    for machine in TARGETS:
        for version, python in pythons().items():
            with tempfile.TemporaryDirectory() as made:
                wheel = build(python, Path(made), **for_machine(machine, version))
                if wheel.stem.endswith("any"):
                    sys.exit(f"wheels: the core did not compile for {python}, {machine}")
                run("auditwheel", "repair", "--wheel-dir", str(folder), str(wheel))
                tag = wheel.name.removesuffix(f"linux_{machine}.whl")
                if not [*folder.glob(f"{tag}manylinux*_2_17_{machine}.*")]:
                    sys.exit(f"wheels: {wheel.name} needs a glibc that is newer than 2.17")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
