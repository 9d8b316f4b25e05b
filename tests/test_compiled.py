"""The core runs compiled or as it is, all of it, and says which."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pointstamp
from pointstamp import compiled

pytestmark = pytest.mark.new_interpreters

PACKAGE = Path(pointstamp.__file__).parent

LOADED = (
    "import sys, pointstamp as ps; from importlib import import_module;"
    "from pointstamp.compiled import MODULES;"
    "print(ps.build_info());"
    "print({import_module(m).__file__.endswith('.py') for m in MODULES})"
)


def run(code: str, **environment: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


def test_the_switch_has_the_sources_run():
    assert run(LOADED, POINTSTAMP_COMPILED="0") == [
        "interpreted: POINTSTAMP_COMPILED=0 is set",
        "{True}",
    ]


def test_without_the_switch_all_is_compiled_or_nothing():
    said, sources = run(LOADED, POINTSTAMP_COMPILED="1")
    assert sources == ("{False}" if said == "compiled" else "{True}")


def test_what_all_libraries_have_of_cython_is_one_of_its_own():
    code = "import sys, pointstamp.progress.subgraph; from pointstamp.compiled import *;"
    code += "print(build_info()); print(SHARED in sys.modules)"
    said, is_there = run(code, POINTSTAMP_COMPILED="1")
    assert is_there == str(said == "compiled")


def test_sources_that_changed_since_run_as_they_are(tmp_path):
    if not compiled.libraries():
        pytest.skip("nothing is compiled here")
    copy = tmp_path / "pointstamp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = compiled.source("pointstamp.progress.antichain", copy)
    file.write_text(file.read_text() + "CHANGED = True\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {LOADED}"
    code += "; from pointstamp.progress import antichain; print(antichain.CHANGED)"
    said, sources, changed = run(code, POINTSTAMP_COMPILED="1", PYTHONPATH="")
    assert said.startswith("interpreted: its files have changed")
    assert (sources, changed) == ("{True}", "True")


def test_it_runs_from_an_archive(tmp_path):
    """As Python imports it from one; there are no folders to look for libraries in."""
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for module in PACKAGE.rglob("*.py"):
            file.write(module, module.relative_to(PACKAGE.parent))
    code = (
        "import pointstamp as ps; print(ps.__file__); print(ps.build_info());"
        "print(ps.execute(lambda worker: worker.index, workers=2))"
    )
    environment = {"PYTHONPATH": str(archive), "PYTHONSAFEPATH": "1", "POINTSTAMP_COMPILED": "1"}
    assert run(code, **environment) == [
        f"{archive}/pointstamp/__init__.py",
        "interpreted: it was installed without a C compiler",
        "[0, 1]",
    ]


def test_what_is_compiled_is_there_and_all_declared_types_are_of_it():
    sources = {compiled.source(module) for module in compiled.COMPILED}
    assert all(source.exists() for source in sources)
    of_sources = {source.with_suffix(".pxd") for source in sources}
    inline = {compiled.source(name).with_suffix(".pxd") for name in compiled.INLINE}
    assert {*PACKAGE.rglob("*.pxd")} - of_sources == inline
    for file in inline:
        # Functions that are compiled into each module that uses them, and nothing else.
        declared = re.findall(r"^cdef (\w+)", file.read_text(), re.MULTILINE)
        assert "inline" in declared
        assert {*declared} <= {"inline", "enum", "struct", "extern"}


def declared() -> dict[str, tuple[str | None, set[str]]]:
    """Of each class that has declared types: what it is derived from, and its attributes."""
    found: dict[str, tuple[str | None, set[str]]] = {}
    for file in PACKAGE.rglob("*.pxd"):
        for line in file.read_text().splitlines():
            if opened := re.match(r"cdef class (\w+)(?:\((\w+)\))?:", line):
                attributes: set[str] = set()
                found[opened[1]] = (opened[2], attributes)
            elif attribute := re.match(
                r"    cdef (?:public |readonly )?[\w. \[:,\]]+?(\w+)(?:\[\d+\])?$", line
            ):
                attributes.add(attribute[1])
    return found


def assigned(owner: ast.ClassDef) -> set[str]:
    """What a class assigns to `self`, names in tuples too."""
    return {
        node.attr
        for node in ast.walk(owner)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def test_what_a_compiled_class_assigns_is_declared():
    """Compiled, it would fail with an AttributeError; uncompiled, nobody notices."""
    types = declared()
    missing = set()
    n_checked = 0
    for module in compiled.MODULES:
        for node in ast.parse(compiled.source(module).read_text()).body:
            if not isinstance(node, ast.ClassDef) or node.name not in types:
                continue
            known: set[str] = set()
            name: str | None = node.name
            while name in types:
                name, attributes = types[name]
                known |= attributes
            n_checked += 1
            missing |= {f"{module}.{node.name}.{each}" for each in assigned(node) - known}
    assert missing == set()
    assert n_checked > 30


def test_make_compiles_again_when_a_source_of_any_layer_changes():
    (layers,) = re.findall(
        r"^LAYERS := (.*)$", (PACKAGE.parent / "Makefile").read_text(), re.MULTILINE
    )
    assert layers.split() == compiled.LAYERS


def test_the_digest_is_of_every_source_and_every_declaration(tmp_path):
    copy = tmp_path / "pointstamp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    assert compiled.digest(copy) == compiled.digest()
    for name in ("progress/subgraph.py", "progress/subgraph.pxd", "kernels/arrays.pxd"):
        before = compiled.digest(copy)
        file = copy / name
        file.write_text(file.read_text() + "# changed\n")
        assert compiled.digest(copy) != before
