"""A run whose source, sink and checkpoint are behind S3's protocol: moto's server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import pointstamp as ps
from tests.checkpoint import s3
from tests.checkpoint.s3 import Store

pytestmark = pytest.mark.xdist_group("s3")  # as those of checkpoints are

if find_spec("moto") is None:  # to import it takes a second, in each process that finds tests
    pytest.skip("moto's server stands for S3", allow_module_level=True)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3.moto_server() as port:
        made = Store(port, f"bucket-{random.randrange(1 << 48):x}")
        yield made
        made.close()


def at(store: Store, folder: str) -> str:
    """The address of a folder, as a user gives it."""
    return store.uri.replace("/checkpoint?", f"/{folder}?")


def seen(store: Store, folder: str) -> list[Any]:
    filesystem = store.filesystem()
    found = filesystem.get_file_info(
        fs.FileSelector(f"{store.name}/{folder}", allow_not_found=True)
    )
    files = [info.path for info in found if info.base_name.startswith("part-")]
    return [r for f in files for r in pq.read_table(f, filesystem=filesystem).to_pylist()]


def put(store: Store, name: str, numbers: list[int]) -> None:
    pq.write_table(pa.table({"n": numbers}), f"{store.name}/{name}", filesystem=store.filesystem())


def test_a_run_with_all_of_it_there_goes_on_exactly_once(store: Store) -> None:
    def flow(scope: Any) -> None:
        numbers = scope.source(ps.FileSource(at(store, "in")))
        numbers.sink(ps.FileSink(at(store, "out")))

    for n in range(2):
        put(store, f"in/{n}.parquet", [n, n])
        ps.run(flow, 2, threads=True, checkpoint=store.uri)
    assert sorted(record["n"] for record in seen(store, "out")) == [0, 0, 1, 1]
