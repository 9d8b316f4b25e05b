"""An object store whose writes fail, and happen all the same: at once, or later."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tests.checkpoint.bucket import Bucket


class Killed(BaseException):
    """Not an error: nobody handles it."""


class DoubtfulBucket(Bucket):
    """Of a share of the requests, by a seed, the answer is lost, or all of it, or it comes late.

    What is late comes before any later request, of whichever life.
    """

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self.rolled = random.Random(f"bucket {seed}")
        self.share = share
        self.n_until_killed: int | None = None
        self.outcomes: dict[str, int] = {}
        self._late: list[tuple[str, bytes | None]] = []

    def _request(self) -> None:
        if self.n_until_killed is not None:
            self.n_until_killed -= 1
            if self.n_until_killed < 0:
                raise Killed
        while self._late and self.rolled.random() < 0.15:
            self._apply(*self._late.pop(self.rolled.randrange(len(self._late))))

    def _apply(self, path: str, data: bytes | None) -> None:
        if data is None:
            self.objects.pop(path, None)
        else:
            self.objects[path] = data

    def _change(self, path: str, data: bytes | None) -> None:
        """Write an object, or delete it without `data`."""
        self._request()
        outcome = "done"
        if self.rolled.random() < self.share:
            outcome = self.rolled.choice(["lost", "answer lost", "late"])
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if outcome in ("done", "answer lost"):
            self._apply(path, data)
        if outcome == "late":
            self._late.append((path, data))
        if outcome != "done":
            raise OSError(5, f"{path}: no answer ({outcome})")

    def _read(self) -> None:
        self._request()
        if self.rolled.random() < self.share / 4:
            raise OSError(5, "no answer to a read")

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        change = self._change

        class Sent(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    data = self.getvalue()
                    super().close()
                    change(path, data)

        return pa.PythonFile(Sent(), mode="w")

    def delete_file(self, path: str) -> None:
        if path not in self.objects:
            raise FileNotFoundError(path)
        self._change(path, None)

    def get_file_info(self, paths: Any) -> list[fs.FileInfo]:
        self._read()
        return super().get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self._read()
        return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.PythonFile:
        self._read()
        if path not in self.objects:
            raise FileNotFoundError(path)
        return super().open_input_file(path)
