"""The long parts of a view as Arrow: the pieces of a timeline, and series.

The rest of a view is some values for each operator, as JSON. A minute of a worker has thousands of
pieces, of which a second adds some tens: what has the former ones asks for those since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PIECES = {"worker": "int32", "began": "float64", "ended": "float64", "what": "string"}
SERIES = dict.fromkeys(("t", "records", "epochs"), "float64")


def timeline_table(view: dict[str, Any], since_s: float) -> Any:
    """The pieces of all workers' timelines that ended after that moment.

    Parameters
    ----------
    view : dict
        Of a `PageSource`.
    since_s : float
        Seconds, by the view's clock.

    Returns
    -------
    pyarrow.Table
        A row for each piece, in the order of the workers and of time: `worker` (int32), `began` and
        `ended` (float64, seconds), `what` (dictionary of strings): an operator's address or what
        the worker did otherwise.

    >>> row = {"worker": 1, "segments": [[0.0, 1.0, "0/2"], [1.0, 1.5, "parked"]]}
    >>> timeline_table({"timeline": {"rows": [row]}}, 1.0).to_pylist()
    [{'worker': 1, 'began': 1.0, 'ended': 1.5, 'what': 'parked'}]
    """
    from pointstamp.formats.arrow_stream_file import table_of

    pieces = [
        (row["worker"], *segment)
        for row in view["timeline"]["rows"]
        for segment in row["segments"]
        if segment[1] > since_s
    ]
    worker, began, ended, what = zip(*pieces, strict=True) if pieces else ((), (), (), ())
    numbers = [np.array(worker, np.int32), np.array(began, float), np.array(ended, float)]
    table = table_of(PIECES, [[*numbers, list(what)]])
    return table.set_column(3, "what", table.column("what").dictionary_encode())


def series_table(view: dict[str, Any], since_s: float) -> Any:
    """Records and epochs a second, by the moments after that one.

    Parameters
    ----------
    view : dict
        Of a `PageSource`.
    since_s : float
        Seconds, by the view's clock.

    Returns
    -------
    pyarrow.Table
        `t` (seconds), `records` and `epochs` (a second), all float64.

    >>> view = {"series": {"t": [1.0, 2.0], "records": [5, 7.5], "epochs": [0, 1]}}
    >>> series_table(view, 1.0).to_pylist()
    [{'t': 2.0, 'records': 7.5, 'epochs': 1.0}]
    """
    from pointstamp.formats.arrow_stream_file import table_of

    points = zip(*(view["series"][name] for name in SERIES), strict=True)
    recent = np.array([each for each in points if each[0] > since_s], float).reshape(-1, 3)
    return table_of(SERIES, [[column.copy() for column in recent.T]])


TABLES: dict[str, Callable[[dict[str, Any], float], Any]] = {
    "timeline": timeline_table,
    "series": series_table,
}
"""What is sent as Arrow, by its name in the view and in its path."""


def without_tables(view: dict[str, Any]) -> dict[str, Any]:
    """A view as JSON has it: of a timeline the workers alone, and no series.

    >>> view = {"timeline": {"to": 2.0, "rows": [{"worker": 1, "segments": []}]}, "series": {}}
    >>> without_tables(view)
    {'timeline': {'to': 2.0, 'workers': [1]}}
    """
    timeline = {name: each for name, each in view["timeline"].items() if name != "rows"}
    timeline["workers"] = [row["worker"] for row in view["timeline"]["rows"]]
    return {**{name: each for name, each in view.items() if name != "series"}, "timeline": timeline}


def with_tables(view: dict[str, Any], tables: dict[str, bytes]) -> dict[str, Any]:
    """The view of which those are the parts: `without_tables` and streams of all its `TABLES`."""
    from pointstamp.formats.arrow_stream_file import from_stream

    timeline, series = (from_stream(tables[name]) for name in TABLES)
    rows: dict[int, list[Any]] = {worker: [] for worker in view["timeline"]["workers"]}
    for worker, *segment in zip(*(each.to_pylist() for each in timeline.columns), strict=True):
        rows.setdefault(worker, []).append(segment)
    return {
        **view,
        "timeline": {
            **{name: each for name, each in view["timeline"].items() if name != "workers"},
            "rows": [{"worker": each, "segments": segments} for each, segments in rows.items()],
        },
        "series": series.to_pydict(),
    }
