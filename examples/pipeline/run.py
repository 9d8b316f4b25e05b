"""A declarative pipeline of Spark: triangles of a graph that changes, and components kept of it.

The project beside this file is copied into a folder, with files of edges, and run by PySpark's own
`spark-pipelines`. Then another file of edges arrives, and the pipeline is run again: its streams
read the new file alone, and the components go on from what was kept of them.

    python examples/pipeline/run.py [FOLDER]

In a folder that has the project already, the pipeline is run once, on the files of `data` that are
new. It needs `pip install 'pointstamp[pipelines]'`.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds

from pointstamp.spark import java

PROJECT = Path(__file__).parent
SPEC, DEFAULTS = "spark-pipeline.yml", "conf/spark-defaults.conf"
REMOTE = "local[4]"
"""Two slots for the workers of a table, and two for what else is made at the same time."""


def make(folder: Path) -> None:
    """The project, whose state and tables are in the same folder."""
    (folder / "data").mkdir(parents=True)
    shutil.copytree(PROJECT / "transformations", folder / "transformations")
    (folder / "conf").mkdir()
    for name in (SPEC, DEFAULTS):
        text = (PROJECT / name).read_text()
        (folder / name).write_text(text.replace("{folder}", str(folder)))


def edges(seed: int, n_vertices: int = 60, n_edges: int = 25) -> list[tuple[int, int]]:
    """Some at random, and a triangle."""
    draw = random.Random(seed)
    a, b, c = draw.sample(range(n_vertices), 3)
    ends = [(draw.randrange(n_vertices), draw.randrange(n_vertices)) for _ in range(n_edges)]
    return [(a, b), (b, c), (c, a), *ends]


def put(folder: Path, number: int) -> None:
    """A file of edges that come, of which those of the file before the last go."""
    lines = [f"{u},{v},1" for u, v in edges(number)]
    lines += [f"{u},{v},-1" for u, v in (edges(number - 2) if number >= 2 else [])]
    file = folder / "data" / f"{number}.csv"
    unseen = file.with_name(f".{file.name}")
    unseen.write_text("\n".join(lines))
    os.utime(unseen, (1e9 + number, 1e9 + number))  # Spark takes files in the order of their times
    unseen.rename(file)


def run(folder: Path) -> None:
    """Have `spark-pipelines` bring the tables up to date."""
    command = shutil.which("spark-pipelines", path=str(Path(sys.executable).parent))
    if command is None:
        raise SystemExit("there is no spark-pipelines: pip install 'pointstamp[pipelines]'")
    with java.for_spark() as home:
        environment = {
            **os.environ,
            "JAVA_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        arguments = ["--remote", REMOTE, "run", "--spec", str(folder / SPEC)]
        subprocess.run([command, *arguments], cwd=folder, env=environment, check=True)


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    """What a table has, whose files are Parquet."""
    found: list[dict[str, object]] = ds.dataset(folder / "tables" / table).to_table().to_pylist()
    return found


def say(folder: Path) -> None:
    n = sum(int(str(row["count"])) for row in rows(folder, "triangles")) // 3
    labels = [row["label"] for row in rows(folder, "components")]
    print(f"{n} triangles, {len({*labels})} components of {len(labels)} vertices", flush=True)


def main(folder: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as made:
        here = Path(folder or made).absolute()
        if not (here / SPEC).exists():
            make(here)
            for number in range(3):
                put(here, number)
            run(here)
            say(here)
            put(here, 3)
        run(here)
        say(here)


if __name__ == "__main__":
    main(*sys.argv[1:])
