"""Results of collections as a notebook shows them: the first rows, escaped."""

from __future__ import annotations

from typing import Any

import pointstamp as ps


def test_changes_and_snapshots_show_their_first_rows() -> None:
    with ps.View(lambda scope, t: t, t="name string?, n long") as view:
        view.insert("t", [(None, 1), ("<b>", 2), ("<b>", 2)])
        changes: Any = view.advance()
        assert changes._repr_html_() == (
            "<table><thead><tr><th>name</th><th>n</th><th>diff</th></tr></thead><tbody>"
            "<tr><td>None</td><td>1</td><td>1</td></tr>"
            "<tr><td>&lt;b&gt;</td><td>2</td><td>2</td></tr></tbody></table><p>2 rows</p>"
        )
        view.insert("t", [("x", n) for n in range(1_000)])
        view.advance()
        shown = view.snapshot()._repr_html_()
    assert shown.count("<tr>") == 21
    assert shown.endswith("<td>x</td><td>16</td></tr></tbody></table><p>20 of 1,003 rows</p>")


def test_records_without_a_schema_are_a_cell_each() -> None:
    with ps.View(lambda scope, t: t, t=None) as view:
        view.insert("t", [("a", 1)])
        view.advance()
        shown = view.snapshot()._repr_html_()
    assert "<th>record</th>" in shown
    assert "<td>(&#x27;a&#x27;, 1)</td>" in shown
    assert shown.endswith("<p>1 row</p>")
