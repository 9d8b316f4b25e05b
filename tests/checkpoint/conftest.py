"""A checkpoint on this machine, and one in an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from pointstamp.checkpoint import Checkpoint
from tests.checkpoint.bucket import Bucket


class Place:
    """Somewhere that a checkpoint is, whose objects a test may look at and damage."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.bucket = Bucket()

    def checkpoint(self) -> Checkpoint:
        if self.folder is not None:
            return Checkpoint(self.folder)
        return Checkpoint("root", fs.PyFileSystem(self.bucket))

    def names(self) -> list[str]:
        """Of all objects."""
        if self.folder is None:
            return sorted(name.removeprefix("root/") for name in self.bucket.objects)
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in files)

    def record(self, epoch: int, input: str = "edges") -> str:
        """The name of a commit record: in a store, with the term of those that are there."""
        records = (name for name in self.names() if "/committed" in name)
        file = next(records, "/committed.json").rpartition("/")[2]
        return f"log/{input}/{epoch:020}/{file}"

    def change(self, name: str, how: Callable[[bytes], bytes]) -> None:
        """Damage an object."""
        self.write(name, how(self.read(name)))

    def read(self, name: str) -> bytes:
        if self.folder is None:
            return self.bucket.objects[f"root/{name}"]
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        if self.folder is None:
            self.bucket.objects[f"root/{name}"] = data
        else:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(data)

    def remove(self, name: str) -> None:
        if self.folder is None:
            del self.bucket.objects[f"root/{name}"]
        else:
            (self.folder / name).unlink()


@pytest.fixture(params=["local", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path / "checkpoint" if request.param == "local" else None)
