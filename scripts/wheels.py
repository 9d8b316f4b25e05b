"""Builds the wheels of a release into `dist/`: a pure one, and a compiled one for each Python.

    .venv/bin/python scripts/wheels.py [FOLDER]

ziglang compiles against the glibc of 2014 and for any x86-64, and auditwheel checks that the
wheels need nothing newer, and names them so. Which Pythons: those of `VERSIONS` that are on the
PATH, or that pyenv or uv have, with their headers. `uv build` makes each wheel in an environment
of its own, so nothing but `make wheels` has to be installed.
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
PLATFORM = "manylinux_2_17_x86_64"
ZIG = f"{sys.executable} -m ziglang cc -target x86_64-linux-gnu.2.17 -mcpu=x86_64"

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


def main(folder: Path) -> None:
    """Build all wheels into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(build(Path(sys.executable), folder, POINTSTAMP_COMPILED="0").name, flush=True)
    for python in pythons().values():
        with tempfile.TemporaryDirectory() as made:
            wheel = build(python, Path(made), CC=ZIG, LDSHARED=f"{ZIG} -shared")
            if wheel.stem.endswith("any"):
                sys.exit(f"wheels: the core did not compile for {python}")
            run("auditwheel", "repair", "--plat", PLATFORM, "--wheel-dir", str(folder), str(wheel))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
