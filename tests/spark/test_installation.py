"""What is shipped, and what is said of executors that cannot use it; mostly without Spark."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import replace
from weakref import WeakSet

import pytest

import pointstamp.spark
from pointstamp import compiled
from pointstamp.errors import SparkSetupError
from pointstamp.spark import installation
from pointstamp.spark.installation import check_arrival, check_libraries, examined_here, pack
from tests.spark.standalone import python_without

HERE = examined_here()


def test_the_same_files_are_the_same_archive(tmp_path):
    first, second = (tmp_path / name for name in "ab")
    first.mkdir()
    second.mkdir()
    one, other = pack(first, libraries=False), pack(second, libraries=False)
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("libraries", [False, True])
def test_what_is_unpacked_is_a_package_that_runs(tmp_path, libraries):
    if libraries and compiled.build_info() != "compiled":
        pytest.skip("nothing is compiled here")
    with zipfile.ZipFile(pack(tmp_path, libraries=libraries)) as packed:
        packed.extractall(tmp_path / "pointstamp")
    script = "import pointstamp.spark.task as t, pointstamp as p; print(t.__file__, p.build_info())"
    # Nothing of this environment's own, in which there may be another pointstamp.
    path = ":".join([str(tmp_path), *(p for p in sys.path if p.endswith("-packages"))])
    said = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith(str(tmp_path))
    assert said.split()[1].startswith("compiled" if libraries else "interpreted")


def test_what_executors_have_is_found_as_it_is_here():
    assert HERE.missing == ()
    assert HERE.executable == sys.executable
    assert HERE.where == str(installation.PACKAGE)


def test_a_digest_is_of_the_sources_alone(tmp_path):
    examine = installation._examiner()
    package = tmp_path / "pointstamp"
    package.mkdir()
    (package / "a.py").write_text("x = 1")

    def digest():
        return installation._found(examine([], "", str(package))).digest

    before = digest()
    (package / "a.so").write_text("of any kind")
    assert digest() == before
    (package / "a.py").write_text("x = 2")
    assert digest() != before


def test_executors_that_lack_libraries_are_named_with_all_that_is_missing():
    check_libraries([HERE])
    lacking = [
        replace(HERE, host="one", missing=("cloudpickle",)),
        HERE,
        replace(HERE, host="two", missing=("pyarrow", "numpy")),
    ]
    with pytest.raises(SparkSetupError, match=r"lack cloudpickle, numpy, pyarrow \(.* one; .* two"):
        check_libraries(lacking)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"digest": "other"},
            r"had imported that one before: install before the first run",
        ),
        ({"where": "", "digest": ""}, r"did not reach .* spark\.sql\.artifact\.isolation"),
        ({"trouble": "ImportError: too old"}, r"cannot import it: ImportError: too old; see"),
    ],
)
def test_executors_that_cannot_use_what_was_sent_say_why(changed, said):
    check_arrival([HERE], HERE.digest)
    with pytest.raises(SparkSetupError, match=said):
        check_arrival([HERE, replace(HERE, **changed)], HERE.digest)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
            "driver: 3.12, PySpark cannot run with different minor versions.",
            r"executors run Python 3\.9, and this program Python 3\.12",
        ),
        ("An error occurred\n: a.B: no luck\n\tat c.D", r"what they have: a\.B: no luck; see"),
    ],
)
def test_executors_that_cannot_be_asked_are_said_to_be_so(text, said):
    with pytest.raises(SparkSetupError, match=said):
        raise installation._cannot_ask(text)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_libraries_that_another_python_lacks_are_said_before_the_job(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_asked", WeakSet())
    frame = pointstamp.spark.run(lambda scope, records: records, spark.range(3), workers=1)
    assert frame.count() == 3  # its Python is ours
    assert spark not in installation._asked
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python_without(tmp_path, "pyarrow"))
    with pytest.raises(SparkSetupError, match=r"executors lack pyarrow \(.*: .*PYSPARK_PYTHON"):
        frame.count()
    with pytest.raises(SparkSetupError, match=r"executors lack pyarrow \(.*: .*PYSPARK_PYTHON"):
        pointstamp.spark.serve(lambda scope, n: n, spark, inputs={"n": "n long"})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_another_version_of_python_is_said_before_the_job(spark, tmp_path, monkeypatch):
    frame = pointstamp.spark.run(lambda scope, records: records, spark.range(3), workers=1)
    monkeypatch.setattr(installation, "_asked", WeakSet())
    # Ours by another name, so that it is asked; and as if this program had another.
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python_without(tmp_path, "cloudpickle"))
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.9")
    with pytest.raises(SparkSetupError, match=r"run Python 3\.1\d, and this program Python 3\.9"):
        frame.count()
