"""Builds the wheels of a release into `dist/`: a pure one, and compiled ones for each Python.

    .venv/bin/python scripts/wheels.py [FOLDER]

ziglang compiles for the machines of `TARGETS`, whichever this one is, against the glibc of 2014,
and auditwheel checks that the wheels need nothing newer, and names them so. Which Pythons: those
of `VERSIONS` that are on the PATH, or that pyenv or uv have, with their headers; of one that is
not there a line says so. `uv build` makes each wheel in an environment of its own, so nothing but
`make wheels` has to be installed.
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

GLIBC = "2.17"

VERSION = """
import sys, sysconfig, pathlib
if pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
    print("%d.%d" % sys.version_info[:2])
"""
CONFIGURATION = """
import sysconfig, pathlib
headers = pathlib.Path(sysconfig.get_path("include"))
of_machine = headers.parent / str(sysconfig.get_config_var("MULTIARCH")) / headers.name
print(of_machine / "pyconfig.h")
"""


def pythons() -> dict[str, Path]:
    """The Pythons at hand, by version."""
    found = {}
    for version in VERSIONS:
        candidates = [
            *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
            *Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"),
            Path(shutil.which(f"python{version}") or "/nonexistent"),
        ]
        ours = (each for each in candidates if each.exists() and said_by(each, VERSION) == version)
        python = next(ours, None)
        if python is None:
            print(f"no wheels for Python {version}: it is not here, or without its headers")
        else:
            found[version] = python
    return found


def said_by(python: Path, program: str) -> str:
    """What a program prints that a Python runs; nothing if that does not start."""
    ran = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def build(python: Path, folder: Path, **environment: str) -> Path:
    """One wheel, of the sources as they are here."""
    run("uv", "build", "--wheel", "--quiet", "--no-config", "--python", str(python),
        "--out-dir", str(folder), str(ROOT), **environment)  # fmt: skip
    return max(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def run(program: str, *arguments: str, **environment: str) -> None:
    """Run a program of this environment, or of the PATH; ends with what it says if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    ran = subprocess.run(
        [program, *arguments],
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        sys.exit(f"{ran.stdout}wheels: {program} failed with status {ran.returncode}")


def for_machine(machine: str, version: str, headers: Path) -> dict[str, str]:
    """What the environment says to compile for a machine; `headers` are looked through, too."""
    zig = (
        f"{sys.executable} -m ziglang cc "
        f"-target {machine}-linux-gnu.{GLIBC} -mcpu={TARGETS[machine]} -I{headers}"
    )
    return {
        "CC": zig,
        "LDSHARED": f"{zig} -shared",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version.replace('.', '')}-{machine}-linux-gnu.so",
    }


def copy_configuration(python: Path, machine: str, headers: Path) -> None:
    """Have the headers of a Python work for a machine.

    They are the same for all machines with words of 64 bits but for `pyconfig.h`, and what
    differs in that does not matter to modules: whether there is assembler of x86, and the
    like. Debian's Python has it in a folder of the machine's name, in which C compilers look by
    themselves, but not ziglang; and that of another machine is not there.
    """
    own = Path(said_by(python, CONFIGURATION))
    if own.exists():
        copy = headers / f"{machine}-linux-gnu" / own.parent.name / own.name
        copy.parent.mkdir(parents=True)
        shutil.copy2(own, copy)


def compiled(python: Path, version: str, machine: str, folder: Path) -> Path:
    """The wheel for a Python and a machine."""
    with tempfile.TemporaryDirectory() as made:
        headers = Path(made, "headers")
        copy_configuration(python, machine, headers)
        wheel = build(python, Path(made), **for_machine(machine, version, headers))
        if wheel.stem.endswith("any"):
            sys.exit(f"wheels: the core did not compile for {python}, {machine}")
        run("auditwheel", "repair", "--wheel-dir", str(folder), str(wheel))
        tag = wheel.name.removesuffix(f"linux_{machine}.whl")
        platform = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
        repaired = [*folder.glob(f"{tag}*{platform}.*")]
        if not repaired:
            sys.exit(f"wheels: {wheel.name} needs a glibc that is newer than {GLIBC}")
        return repaired[0]


def main(folder: Path) -> None:
    """Build all wheels into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(build(Path(sys.executable), folder, POINTSTAMP_COMPILED="0").name, flush=True)
    for version, python in pythons().items():
        for machine in TARGETS:
            print(compiled(python, version, machine, folder).name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
