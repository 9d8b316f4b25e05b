"""Runs the notebooks of docs/notebooks, and writes down what their cells show.

    python docs/run_notebooks.py            writes the outputs, and docs/notebook_picture.svg
    python docs/run_notebooks.py --check    ends with 1 if one shows something else than it has

In cells with the tag "varies" numbers are different each time (seconds, rates), and are not
compared. Addresses and tokens of pages are replaced, as they are of no use later.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PICTURE = ROOT / "docs" / "notebook_picture.svg"
TIMEOUT_S = 300

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w%-]+")
PLACEHOLDER = "http://127.0.0.1:40211/?token=hbLv7lUq0XqvCkIu6fW2Mw3bA5cS9n1e"
ANNOUNCEMENT = "pointstamp: the live page is at"


def run(path: Path) -> Any:
    """The notebook with what it shows now; a cell that raises ends this."""
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            record_timing=False,
            startup_timeout=10 * TIMEOUT_S,
            resources={"metadata": {"path": folder}},
        ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in map(plain, cell.outputs) if each is not None]
    return notebook


def plain(output: Any) -> Any:
    """An output without what is of this run alone; None if that is all."""
    if output.output_type == "stream":
        # It goes to standard error when it comes, which may be in the next cell.
        kept = [line for line in output.text.splitlines(True) if ANNOUNCEMENT not in line]
        output.text = "".join(kept)
        return output if output.text else None
    for kind, text in output.get("data", {}).items():
        output.data[kind] = ADDRESS.sub(PLACEHOLDER, text)
    return output


def compared(notebook: Any) -> list[Any]:
    """What has to be the same each time."""
    found = []
    for cell in notebook.cells:
        shown = str(
            [
                (each.output_type, sorted(each.get("data", {}).items()), each.get("text"))
                for each in outputs(cell)
            ]
        )
        if "varies" in cell.metadata.get("tags", []):
            shown = re.sub(r"[\d,.:]+", "#", shown)
        found.append((cell.source, shown))
    return found


def outputs(cell: Any) -> list[Any]:
    """The outputs of a cell; none of one that is text."""
    return list(cell.outputs) if cell.cell_type == "code" else []


def picture(notebook: Any) -> list[str]:
    """The pictures that a notebook shows."""
    return [
        each.data["image/svg+xml"]
        for cell in notebook.cells
        for each in outputs(cell)
        if "image/svg+xml" in each.get("data", {})
    ]


def main() -> str | None:
    """Write or check the notebooks; what is not as it was, if anything."""
    is_check, said, pictures = "--check" in sys.argv, list[str](), list[str]()
    for path in NOTEBOOKS:
        before, notebook = nbformat.read(path, 4), run(path)
        pictures += picture(notebook)
        if not is_check:
            nbformat.write(notebook, path)
        for now, then in zip(compared(notebook), compared(before), strict=True):
            if is_check and now != then:
                said.append(f"{path.name}: a cell shows something else than it has\n{now}\n{then}")
    if not is_check:
        PICTURE.write_text(pictures[0])
    elif pictures[0] != PICTURE.read_text():
        said.append(f"{PICTURE.name} is another picture than that of the notebook")
    return "\n".join([*said, "run docs/run_notebooks.py"]) if said else None


if __name__ == "__main__":
    sys.exit(main())
