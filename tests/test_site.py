"""The site's reference has every public name, and its links lead where the pages say."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILDER = ROOT / ".venv" / "site" / "bin" / "python"
SPEC = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts" / "site_pages.py")
assert SPEC is not None
assert SPEC.loader is not None
site_pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(site_pages)

PACKAGES = [f"pointstamp.{name}" for name in site_pages.PACKAGES if name != "errors"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(package: str) -> None:
    assert set(site_pages.public_names(package)) == set(importlib.import_module(package).__all__)


def test_every_public_name_of_pointstamp_is_on_a_page() -> None:
    import pointstamp as ps

    layers = {page for page, _, _ in site_pages.reference()} - set(site_pages.PACKAGES)
    on_pages = {n for page, _, names in site_pages.reference() if page in layers for n in names}
    modules = set(site_pages.PACKAGES)
    assert on_pages == set(ps.__all__) - modules


@pytest.mark.parametrize(
    ("target", "source", "there"),
    [
        ("../README.md#on-spark", "docs/outside.md", "index.md#on-spark"),
        ("docs/state.md", "README.md", "state.md"),
        ("../examples", "docs/examples.md", f"{site_pages.REPOSITORY}/tree/main/examples"),
        ("state.md#snapshots", "docs/service.md", "state.md#snapshots"),
        ("../absent.py", "docs/service.md", "../absent.py"),
    ],
)
def test_a_link_leads_to_a_page_or_to_the_repository(target: str, source: str, there: str) -> None:
    assert site_pages.link(target, source) == there


@pytest.mark.xdist_group("long")
@pytest.mark.skipif(
    not BUILDER.exists(),
    reason="what builds the site is not installed here: `make docs-setup` does that",
)
def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    ran = subprocess.run(
        [BUILDER, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    streams = (tmp_path / "api" / "streams.html").read_text()
    assert 'id="pointstamp.operators.stream.Stream.map"' in streams
    # A name that is a value has the docstring of its class.
    for page in ("index", "times"):
        assert "epochs and rounds" in (tmp_path / "api" / f"{page}.html").read_text()
    # Two parameters of one entry each have their own type.
    accept = (tmp_path / "api" / "running.html").read_text()
    plain = re.sub(r"<[^>]*>|\s+", "", accept)
    assert "host(str,default:&#39;127.0.0.1&#39;)" in plain
    assert "port(int,default:0)" in plain
    assert "There is no such page" in (tmp_path / "404.html").read_text()
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'(href|src)="/', text), page  # the site is not at a server's root
        assert 'src="http' not in text
        assert 'rel="stylesheet" href="http' not in text
        # What docstrings have for doctest and Sphinx alone.
        assert "<p>::</p>" not in text
        assert "doctest: +" not in text


def test_bars_in_tables_have_no_backslash_on_the_site() -> None:
    page = r"<td><code>f(\|x\| x)</code> \|</td><pre><code>a \| b</code></pre>"
    shown = r"<td><code>f(|x| x)</code> \|</td><pre><code>a \| b</code></pre>"
    assert site_pages.with_bars(page) == shown


@pytest.mark.parametrize(
    ("page", "boosts"), [("api/streams.md", True), ("benchmarks.md", False), ("spark.md", None)]
)
def test_a_search_finds_names_in_the_reference_first(page: str, boosts: bool | None) -> None:
    shown = SimpleNamespace(file=SimpleNamespace(src_uri=page), meta={})
    assert site_pages.on_page_markdown("[to](state.md)", page=shown) == "[to](state.md)"
    boost = shown.meta.get("search", {}).get("boost", 1.0)
    assert (boost > 1, boost < 1) == (boosts is True, boosts is False)
