"""Prints, at the end of a run, what each mutant was caught by."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter):
    rows = dict(
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == "mutant"
    )
    if not rows:
        return
    width = max(map(len, rows))
    terminalreporter.section("mutants")
    terminalreporter.write_line(f"{'mutant':{width}} | caught by (after n runs)")
    for name, found in rows.items():
        catchers = ", ".join(f"{catcher} ({n_runs})" for catcher, n_runs in found.items())
        terminalreporter.write_line(f"{name:{width}} | {catchers or 'nothing'}")
