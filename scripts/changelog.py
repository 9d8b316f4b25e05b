"""Writes the fragments of `changes.d/` into `CHANGELOG.md`, grouped.

    python scripts/changelog.py                  what is not released yet, again
    python scripts/changelog.py 0.2.0 2027-01-31 a release: the section gets its name and date,
                                                 and the fragments, now written, go

A fragment is a file with one sentence or a few. `name.md` says what is new; `name.changed.md`,
or a sentence that begins with "Breaking:", what a program has to do differently;
`name.fixed.md` what was wrong; `name.removed.md` what is gone. `CHANGELOG.md` begins with an
introduction, and then has a section for each release, the latest first; only the section
`Unreleased` is ever written.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"changed": "Changed", "added": "Added", "fixed": "Fixed", "removed": "Removed"}
BREAKING = "Breaking:"
UNRELEASED = "## Unreleased"


def fragments(folder: Path) -> list[Path]:
    """The files with a change each, in order of their names."""
    return sorted(path for path in folder.glob("*.md") if path.name != "README.md")


def kind_of(fragment: Path) -> str:
    """One of `KINDS`; raises ValueError for a name that says another."""
    _, _, kind = fragment.stem.partition(".")
    if kind and kind not in KINDS:
        raise ValueError(f"{fragment.name}: {kind!r} is none of {', '.join(KINDS)}")
    return kind or "added"


def section(folder: Path, title: str) -> str:
    """The section of the fragments in `folder`."""
    sentences: dict[str, list[str]] = {}
    for fragment in fragments(folder):
        sentence = " ".join(fragment.read_text().split())
        kind = kind_of(fragment)
        if sentence.startswith(BREAKING):
            kind, sentence = "changed", sentence.removeprefix(BREAKING).lstrip()
        if not sentence:
            raise ValueError(f"{fragment.name} is empty")
        sentences.setdefault(kind, []).append(f"- {sentence}")
    groups = [
        f"### {KINDS[kind]}\n\n" + "\n".join(sentences[kind]) for kind in KINDS if kind in sentences
    ]
    return "\n\n".join([title, *groups]) + "\n"


def renewed(changelog: str, new: str) -> str:
    """`changelog` with its unreleased section replaced by `new`, or with `new` put first."""
    introduction, *releases = changelog.split("\n## ")
    kept = [f"## {release}" for release in releases if not f"## {release}".startswith(UNRELEASED)]
    return "\n".join([introduction.rstrip("\n") + "\n", new, *kept]).rstrip("\n") + "\n"


def main(root: Path, release: str = "", date: str = "") -> None:
    """Write the file; for a release, empty the folder."""
    title = f"## {release} ({date})" if release else UNRELEASED
    changelog = root / "CHANGELOG.md"
    changelog.write_text(renewed(changelog.read_text(), section(root / "changes.d", title)))
    if release:
        for fragment in fragments(root / "changes.d"):
            fragment.unlink()


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3):
        sys.exit("usage: changelog.py [RELEASE DATE]")
    main(ROOT, *sys.argv[1:])
