"""An object store in memory, for tests: whole objects, and no renaming."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
from pyarrow import fs


class Bucket(fs.FileSystemHandler):
    """Objects by path; an object is there when its stream is closed, and not before."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get_type_name(self) -> str:
        return "bucket"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: str | list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in ([paths] if isinstance(paths, str) else paths)]

    def _info(self, path: str) -> fs.FileInfo:
        if path in self.objects:
            return fs.FileInfo(path, fs.FileType.File, size=len(self.objects[path]))
        is_folder = any(name.startswith(f"{path}/") for name in self.objects)
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        base = f"{selector.base_dir}/"
        inside = {name.removeprefix(base) for name in self.objects if name.startswith(base)}
        if selector.recursive:
            return [self._info(base + name) for name in inside]
        return [self._info(base + name) for name in {name.split("/")[0] for name in inside}]

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        objects = self.objects

        class Upload(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    objects[path] = self.getvalue()
                super().close()

        return pa.PythonFile(Upload(), mode="w")

    def open_input_file(self, path: str) -> pa.PythonFile:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pa.PythonFile(io.BytesIO(self.objects[path]), mode="r")

    open_input_stream = open_input_file

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError("objects are written whole")

    def delete_file(self, path: str) -> None:
        if path not in self.objects:
            raise FileNotFoundError(path)
        del self.objects[path]

    def create_dir(self, path: str, recursive: bool) -> None:
        pass

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("objects have no other names")

    def delete_dir(self, path: str) -> None:
        assert not any(name.startswith(f"{path}/") for name in self.objects), "it is not empty"

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError("objects are deleted one by one")

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("objects are deleted one by one")

    copy_file = move
