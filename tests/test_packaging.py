"""Wheels run where nothing but they and what they name is installed."""

from __future__ import annotations

import os
import platform
import re
import runpy
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pointstamp import build_info

pytestmark = pytest.mark.new_interpreters

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("pointstamp", "setup.py", "pyproject.toml", "README.md", "LICENSE")

BUILT = sorted((ROOT / "dist").glob("*-manylinux*.whl"))
"""What `make wheels` has left here: in CI nothing, before a release all of it."""

WHEELS = runpy.run_path(str(ROOT / "scripts" / "wheels.py"))
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

PROGRAM = """
import pointstamp as ps

def main(worker, upto):
    seen = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(worker.index, upto, worker.peers))
        numbers.map(lambda n: n * n).exchange(lambda n: n).inspect(seen.append)
    worker.run()
    return sum(seen)

if __name__ == "__main__":
    print(ps.build_info())
    print(sum(ps.execute(main, 10, workers=2)))
    try:
        ps.simulate
    except ps.errors.MissingExtraError as error:
        print(error)
"""


def run(*command: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **kwargs
    )
    assert ran.returncode == kwargs.pop("status", 0), ran.stdout + ran.stderr
    return ran


def wheel_of(folder: Path, **environment: str) -> Path:
    """A wheel of this checkout, made in a copy of it."""
    copy = folder / "checkout"
    copy.mkdir()
    for name in SHIPPED:
        source = ROOT / name
        copied = shutil.copytree if source.is_dir() else shutil.copy2
        copied(source, copy / name)
    arguments = ("--no-deps", "--no-build-isolation", "-qq", "-w", folder, copy)
    without = {key: value for key, value in os.environ.items() if key not in ("CC", "LDSHARED")}
    run(sys.executable, "-m", "pip", "wheel", *arguments, env={**without, **environment})
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(folder: Path, wheel: Path, base: str | Path) -> Path:
    """A Python like `base`, in an environment with the wheel and what it needs alone."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "environment" / "bin" / "python"
    run(uv, "venv", "-q", "--no-config", "--python", base, folder / "environment")
    locked = ROOT / "requirements.lock"
    arguments = ("-q", "--no-config", "--python", python, "--constraint", locked)
    run(uv, "pip", "install", *arguments, wheel)
    return python


def check(folder: Path, wheel: Path, mode: str, base: str | Path = sys.executable) -> None:
    python = installed(folder, wheel, base)
    (folder / "program.py").write_text(PROGRAM)
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    ran = run(python, folder / "program.py", cwd=folder, env=bare)
    said = ran.stdout.splitlines()
    assert said[:2] == [mode, str(sum(n * n for n in range(10)))]
    assert said[2].endswith("pip install 'pointstamp[simulate]'")

    command = python.with_name("pointstamp")
    assert run(command, "--version", env=bare).stdout.endswith(f"({mode})\n")
    refused = subprocess.run(
        [command, "--help"], capture_output=True, text=True, check=False, env=bare
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "pip install 'pointstamp[cli]'" in refused.stderr


@pytest.mark.xdist_group("long")
def test_the_pure_wheel_runs_in_an_empty_environment(tmp_path):
    wheel = wheel_of(tmp_path, POINTSTAMP_COMPILED="0")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".so", ".sha256"))]
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "examples"))]
    # What the live page loads, and what it says of the libraries in it.
    page = ROOT / "pointstamp" / "observability" / "page"
    files = {str(path.relative_to(ROOT)) for path in page.rglob("*") if path.is_file()}
    assert len(files) > 10
    assert files <= set(names)
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    assert len([name for name in names if ".dist-info/" in name and "LICENSE" in name]) == 4
    check(tmp_path, wheel, "interpreted: it was installed without a C compiler")


@pytest.mark.xdist_group("long")
@pytest.mark.skipif(build_info() != "compiled", reason="nothing is compiled here")
def test_the_compiled_wheel_runs_compiled_in_an_empty_environment(tmp_path):
    wheel = wheel_of(tmp_path)
    assert "py3-none-any" not in wheel.name
    check(tmp_path, wheel, "compiled")


@pytest.mark.skipif(build_info() != "compiled", reason="nothing is compiled here")
def test_a_numpy_of_another_machine_is_good_for_its_headers(tmp_path):
    # As what builds a wheel for another machine installs it.
    numpy = tmp_path / "numpy"
    (numpy / "_core/include").mkdir(parents=True)
    (numpy / "__init__.py").write_text("raise ImportError('of another machine')")
    command = [sys.executable, "setup.py", "--name"]
    # With a compiler that it is given, it takes no libraries that are here; this one is not run.
    environment = {**os.environ, "CC": sys.executable, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "pointstamp"), ran.stderr
    assert "the core runs as it is" not in ran.stderr


@pytest.mark.parametrize("wheel", BUILT, ids=lambda wheel: wheel.name)
def test_a_wheel_of_a_release_is_for_its_machine_and_runs_compiled_there(wheel, tmp_path):
    digits, machine = re.search(r"-cp3(\d+)-cp.*manylinux_2_17_(\w+)\.whl$", wheel.name).groups()
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        found = {struct.unpack_from("<H", archive.read(name), 18)[0] for name in libraries}
    assert found == {ELF_MACHINES[machine]}
    python = WHEELS["pythons"]().get(f"3.{digits}")
    if machine == platform.machine() and python is not None:
        check(tmp_path, wheel, "compiled", python)


def test_pythons_at_hand_are_found_and_others_are_named(tmp_path, monkeypatch, capsys):
    found = tmp_path / ".pyenv/versions/3.12.9/bin/python"
    found.parent.mkdir(parents=True)
    found.write_text("#!/bin/sh\necho 3.12\n")
    without_headers = tmp_path / "python3.13"
    without_headers.write_text("#!/bin/sh\n")
    for python in (found, without_headers):
        python.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert WHEELS["pythons"]() == {"3.12": found}
    assert capsys.readouterr().out.splitlines() == [
        f"no wheels for Python {version}: it is not here, or without its headers"
        for version in ("3.11", "3.13", "3.14")
    ]


def test_the_page_of_the_package_has_what_a_registry_shows(tmp_path):
    metadata = "setuptools.build_meta.prepare_metadata_for_build_wheel(sys.argv[1])"
    code = f"import sys, setuptools.build_meta; {metadata}"
    without = {**os.environ, "POINTSTAMP_COMPILED": "0"}
    run(sys.executable, "-c", code, tmp_path, cwd=ROOT, env=without)
    (written,) = tmp_path.glob("*.dist-info/METADATA")
    said = written.read_text()
    for line in (
        "Author: The Pointstamp developers",
        "Project-URL: Changelog,",
        "Description-Content-Type: text/markdown",
        "License-Expression: Apache-2.0 AND EPL-2.0 AND MIT",
        "Provides-Extra: cli",
        "Provides-Extra: metrics",
        "Provides-Extra: simulate",
        "\n# Pointstamp\n",
    ):
        assert line in said
