"""`scripts/changelog.py` writes the fragments of `changes.d/` into the changelog."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Changelog\n\nWhat changed.\n"


@pytest.fixture
def changelog():
    spec = importlib.util.spec_from_file_location("changelog", ROOT / "scripts" / "changelog.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    (tmp_path / "changes.d").mkdir()
    (tmp_path / "changes.d" / "README.md").write_text("how to write them")
    (tmp_path / "changes.d" / "b-loops.md").write_text("Loops\nend.\n")
    (tmp_path / "changes.d" / "a-maps.md").write_text("Maps map.")
    (tmp_path / "changes.d" / "names.changed.md").write_text("`f` is `g`.")
    (tmp_path / "changes.d" / "more.md").write_text("Breaking: `g` is `h`.")
    (tmp_path / "CHANGELOG.md").write_text(HEAD)
    return tmp_path


UNRELEASED = """
## Unreleased

### Changed

- `g` is `h`.
- `f` is `g`.

### Added

- Maps map.
- Loops end.
"""


def test_fragments_are_grouped_below_what_is_not_released(changelog, project):
    for _ in range(2):  # the second time it finds its own section
        changelog.main(project)
        assert (project / "CHANGELOG.md").read_text() == HEAD + UNRELEASED


def test_a_release_names_the_section_and_empties_the_folder(changelog, project):
    changelog.main(project)
    changelog.main(project, "0.2.0", "2027-01-31")
    released = HEAD + UNRELEASED.replace("Unreleased", "0.2.0 (2027-01-31)")
    assert (project / "CHANGELOG.md").read_text() == released
    assert [path.name for path in (project / "changes.d").iterdir()] == ["README.md"]
    (project / "changes.d" / "next.fixed.md").write_text("It works.")
    changelog.main(project)
    new = "\n## Unreleased\n\n### Fixed\n\n- It works.\n"
    assert (project / "CHANGELOG.md").read_text() == HEAD + new + released.removeprefix(HEAD)


def test_a_fragment_of_another_kind_is_refused(changelog, project):
    (project / "changes.d" / "it.improved.md").write_text("It is better.")
    with pytest.raises(ValueError, match=r"it.improved.md: 'improved' is none of changed, added"):
        changelog.main(project)


def test_the_fragments_of_this_project_can_be_written(changelog):
    written = changelog.section(ROOT / "changes.d", "## Unreleased")
    assert written.count("\n- ") == len(changelog.fragments(ROOT / "changes.d"))
