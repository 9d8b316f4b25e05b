"""What the workers of a service wait for: its driver asks them, wherever they run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.communication.explanations import explain_program

NUMBER = pa.schema({"n": pa.int64()})


@pytest.mark.parametrize(("workers", "threads"), [(2, False), (1, False), (2, True)])
def test_each_worker_of_a_service_explains_itself(
    tmp_path: Path, workers: int, threads: bool
) -> None:
    """The one too that is in the middle of code of the program."""
    os.mkfifo(tmp_path / "wait")

    def build(scope: Any, numbers: Any) -> Any:
        def slow(batch: Any) -> Any:
            (tmp_path / "wait").read_bytes()
            return batch

        return numbers.exchange("n").map_batches(slow, name="Slow")

    service = ps.serve(
        build, workers, threads=threads, inputs={"numbers": NUMBER}, outputs={"same": NUMBER}
    )
    with service:
        service.input("numbers").send([{"n": 1}])
        service.input("numbers").advance_to(1)
        said = ""
        while "is in operator 'Slow', at time 0" not in said:
            found = explain_program(60)
            said = "\n".join(each.text or "" for each in found)
        (tmp_path / "wait").write_bytes(b"")
        assert service.output("same").collect(upto=0)["n"].to_pylist() == [1]
    for index in range(workers):
        assert said.count(f"worker {index} of {workers} ") == 1
    assert len(found) == (1 if threads or workers == 1 else workers)
