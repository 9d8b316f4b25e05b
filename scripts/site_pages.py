"""Pages of the site that are not in `docs/`: a hook of MkDocs, which `mkdocs.yml` names.

Pages link to files of the repository as they are read there: `../README.md`, `../examples/bfs.py`.
On the site a file that is a page becomes a link to that page, and any other a link to the
repository. The reference has a page for each part of the package, made of the public names that
its `__init__.py` declares; these are read as text, and nothing is imported.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/pointstamp/pointstamp"

BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that lie beside `docs/`, and where they are on the site."""

LAYERS = {
    "running": ("Running programs", ("runtime", "compiled", "communication", "observability")),
    "streams": ("Scopes and streams", ("operators",)),
    "operators": ("Operators of your own", ("dataflow",)),
    "times": ("Times", ("progress",)),
    "collections": ("Collections", ("collections",)),
    "events": ("Sources, sinks and captured streams", ("formats",)),
    "service": ("Services", ("service",)),
}
"""Pages of the names of `pointstamp` itself, by the layer where they are."""

PACKAGES = ("graph", "spark", "checkpoint", "observability", "testing", "errors")
"""Public modules, each with a page."""

NOT_FOUND = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Pointstamp</title>
<style>body { font-family: system-ui, sans-serif; margin: 4rem auto; max-width: 40rem }</style>
<h1>There is no such page</h1>
<p><a id="first" href=".">The first page of the documentation</a></p>
<script>
const version = location.pathname.match(/^.*?\\/\\d+(\\.\\d+)+\\w*\\//)
if (version) document.getElementById("first").href = version[0] + "index.html"
</script>
</html>
"""
"""What a server shows for a path that is none, at any depth and wherever the site is served.

The theme's page has links from the root of the server, since relative ones need to know its depth.
"""

MADE = re.compile(r"(\w+)\(")
"""A value that is made by a call, and of what."""

BOOSTS = {"api/": 4.0, "benchmarks.md": 0.1, "profiles.md": 0.1, "changelog.md": 0.1}
"""How much what a search finds on pages counts, by how their paths begin; 1 on all others.

A word that is a public name should lead to what the reference says of it, and not to the long
tables in which it stands most often.
"""


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(tree: ast.Module, package: str) -> dict[str, str]:
    """Where the names are that a package's `__init__.py` imports from its own modules."""
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
        for alias in node.names
        if node.module is not None
    }


def public_names(package: str) -> dict[str, str]:
    """The public names of a package, each with the module that defines it.

    Raises
    ------
    KeyError
        A name of `__all__` that is not imported from a module of the package.
    """
    tree = _tree(_file(package))
    if package == "pointstamp.errors":
        classes = (n.name for n in tree.body if isinstance(n, ast.ClassDef))
        return {name: package for name in classes if not name.startswith("_")}
    homes, names = _imports(tree, "pointstamp"), set[str]()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id in ("__all__", "_HOMES"):
                texts = node.value.keys if isinstance(node.value, ast.Dict) else [node.value]
                names |= {
                    text.value
                    for each in texts
                    if each is not None
                    for text in ast.walk(each)
                    if isinstance(text, ast.Constant) and isinstance(text.value, str)
                }
    return {name: homes[name] for name in sorted(names, key=lambda n: (n.lower(), n))}


def first_line(module: str, name: str) -> str:
    """What a docstring says first of a name, or of its class, or nothing where it has none.

    >>> first_line("pointstamp.progress.timestamp", "Int")
    'Non-negative integers, in their order: epochs and rounds.'
    """
    for node in _tree(_file(module)).body:
        if getattr(node, "name", None) == name:
            text = ast.get_docstring(node)  # type: ignore[arg-type]  # a class or a function
            if text:  # overloads come before what has one
                return " ".join(text.split("\n\n")[0].split())
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return first_line(str(node.module), name)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            made = MADE.match(ast.unparse(node.value))
            return first_line(module, made[1]) if made else ""
    return ""


def reference() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name and head of each page of the reference, with the names on it.

    Raises
    ------
    ValueError
        A public name in a layer that has no page.
    """
    names = public_names("pointstamp")
    layers = {name: (home.split(".")[1]) for name, home in names.items()}
    on_pages = {layer for _, there in LAYERS.values() for layer in there}
    if homeless := sorted(name for name in names if layers[name] not in on_pages):
        raise ValueError(f"{homeless}: no page of the reference has their layers: see LAYERS")
    for page, (title, there) in LAYERS.items():
        yield page, f"# {title}\n", {n: home for n, home in names.items() if layers[n] in there}
    for package in PACKAGES:
        path = f"pointstamp.{package}"
        yield package, _of_module(path), public_names(path)


def _of_module(path: str) -> str:
    options = "members: false\n      show_root_heading: false\n      show_root_toc_entry: false"
    return f"# {path}\n\n::: {path}\n    options:\n      {options}\n"


def _prefix(page: str) -> str:
    return f"pointstamp.{page}" if page in PACKAGES else "pointstamp"


def _entry(prefix: str, name: str, home: str) -> str:
    """What mkdocstrings makes an entry of, with an anchor of its public name."""
    options = f"    options:\n      heading: {name}\n      toc_label: {name}"
    anchor = "" if prefix == home else f'<a id="{prefix}.{name}"></a>\n\n'
    return f"{anchor}::: {home}.{name}\n{options}"


def _overview(pages: list[tuple[str, str, dict[str, str]]]) -> str:
    parts = [
        "# Reference\n",
        "All public names. Those of `pointstamp` itself are written `ps.` on the other pages,"
        " after `import pointstamp as ps`. What is in no list here may change.\n",
    ]
    for page, head, names in pages:
        title = head.partition("\n")[0].removeprefix("# ")
        rows = [
            f"| [`{name}`][{home}.{name}] | {_cell(first_line(home, name))} |"
            for name, home in names.items()
        ]
        parts.append(f"## [{title}]({page}.md)\n\n| | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[str, str]:
    """The pages that the site has beside those of `docs/`: where they are, and their text."""
    made = {uri: (ROOT / name).read_text() for name, uri in BESIDE.items()}
    parts = list(reference())
    made["api/index.md"] = _overview(parts)
    placed = set[tuple[str, str]]()
    for page, head, names in parts:
        entries = [
            _entry(_prefix(page), name, home)
            if (name, home) not in placed
            else f"[`{name}`][{home}.{name}] is among the names of `pointstamp`."
            for name, home in names.items()
        ]
        placed |= names.items()
        made[f"api/{page}.md"] = "\n\n".join([head, *entries]) + "\n"
    return made


def link(target: str, source: str) -> str:
    """Where a link of a page leads on the site, given where it leads in the repository.

    Parameters
    ----------
    target : str
        As it is on the page, relative to `source`.
    source : str
        The page, as a path in the repository.

    >>> link("../README.md#on-spark", "docs/outside.md")
    'index.md#on-spark'
    >>> link("docs/state.md", "README.md")
    'state.md'
    >>> link("../examples", "docs/examples.md")
    'https://github.com/pointstamp/pointstamp/tree/main/examples'
    >>> link("state.md#snapshots", "docs/service.md")
    'state.md#snapshots'
    """
    path, hash_, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return target
    file = os.path.normpath(Path(source).parent / path)
    if file in BESIDE:
        return BESIDE[file] + hash_ + anchor
    if file.startswith("docs/"):
        return file.removeprefix("docs/") + hash_ + anchor
    if file.startswith("..") or not (ROOT / file).exists():
        return target  # strict builds refuse it
    return f"{REPOSITORY}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{file}{hash_}{anchor}"


def with_links(text: str, source: str) -> str:
    """A page with its links as they are on the site; code in fences is left as it is."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part
        if part.startswith("```")
        else re.sub(r"(?<=\]\()([^()\s]+)(?=\))", lambda found: link(found[1], source), part)
        for part in parts
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    from mkdocs.structure.files import File

    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **given: Any) -> str:
    """Have links lead where they lead on the site, and a search find what matters first."""
    uri = page.file.src_uri
    for begin, boost in BOOSTS.items():
        if uri.startswith(begin):
            page.meta["search"] = {"boost": boost}
    if uri.startswith("api/"):
        return markdown
    at = {site: name for name, site in BESIDE.items()}
    return with_links(markdown, at.get(uri, f"docs/{uri}"))


def on_page_content(html: str, **given: Any) -> str:
    """Show a bar in the code of a table as GitHub does: Python-Markdown leaves its backslash."""
    return with_bars(html)


def with_bars(html: str) -> str:
    r"""A page in HTML whose inline code has no `\|`; blocks of code are left as they are.

    >>> with_bars(r"<td><code>a \| b</code></td>")
    '<td><code>a | b</code></td>'
    """
    parts = re.split(r"(<pre.*?</pre>)", html, flags=re.DOTALL)
    return "".join(
        part
        if part.startswith("<pre")
        else re.sub(r"<code>[^<]*</code>", lambda found: found[0].replace("\\|", "|"), part)
        for part in parts
    )


def on_post_template(output: str, template_name: str, **given: Any) -> str:
    """A hook: the page for what is not there."""
    return NOT_FOUND if template_name == "404.html" else output
