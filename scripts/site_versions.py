"""Says which versions of the site there are: each is a folder of `site/`, named by its number.

    python scripts/site_versions.py site

`versions.json` is what the theme's menu of versions reads, in the form that mike writes, and
`index.html` leads to the newest version, and `404.html` is that of it. A folder that is put beside
the others is one more.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def versions(site: Path) -> list[str]:
    """The numbers that folders have as names, the newest first.

    >>> import tempfile
    >>> site = Path(tempfile.mkdtemp())
    >>> for name in ("0.9.0", "0.10.0", "assets"):
    ...     (site / name).mkdir()
    >>> versions(site)
    ['0.10.0', '0.9.0']
    """
    names = [path.name for path in site.iterdir() if path.is_dir()]
    numbers = [name for name in names if re.fullmatch(r"\d+(\.\d+)*\w*", name)]
    return sorted(numbers, key=lambda name: [*map(int, re.findall(r"\d+", name))], reverse=True)


def main(site: Path) -> None:
    """Write these files."""
    found = versions(site)
    listed = [
        {"version": name, "title": name, "aliases": ["latest"] if name == found[0] else []}
        for name in found
    ]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n")
    # Some servers look for it at the top alone.
    (site / "404.html").write_bytes((site / found[0] / "404.html").read_bytes())
    newest = f"{found[0]}/index.html"
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>Pointstamp</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}"><a href="{newest}">{newest}</a>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
