"""A file is there whole or not at all, and nothing but files is replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pointstamp.errors import FileFormatError
from pointstamp.formats.atomic_file import folder_beside, place_of, replacing


def write(path: Path, text: str = "new") -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_replaced_when_the_block_succeeds_and_not_before(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_a_file_stays_when_the_block_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half of the n")
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"), replacing(path) as temporary:
        fail(temporary)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_what_a_link_leads_to_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to("there/file")
    for text in ("first", "second"):  # at first the link leads nowhere yet
        write(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert names(target.parent) == ["file"]


def test_a_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileFormatError, match="pipe: this is no ordinary file"):
        write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_to_a_device_is_not_replaced(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    with pytest.raises(FileFormatError, match="link: this is no ordinary file"):
        write(link)
    assert link.is_symlink()


def test_links_in_a_circle_are_no_place(tmp_path):
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    with pytest.raises(FileFormatError, match="circle: this is no ordinary file"):
        place_of(circle)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "an empty name, or '.', names no file"),
        ("{folder}", "this is a directory"),
        ("{folder}/no/file", "there is no directory .*no"),
        ("{folder}/" + "x" * 300, "cannot be written: File name too long"),
    ],
)
def test_where_no_file_can_be_is_said(tmp_path, name, said):
    path = name.format(folder=tmp_path)
    with pytest.raises(FileFormatError, match=said), replacing(path):
        pytest.fail("nothing can be written there")
    with pytest.raises(FileFormatError, match=said), folder_beside(path):
        pytest.fail("no folder can be made there")
