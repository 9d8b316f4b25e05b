"""Random event times through windows in a simulation, against putting them together by hand."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np

import pointstamp as ps
from pointstamp.containers import Arrays

Found = list[tuple[int, Any]]


def check_windows(seed: int) -> None:
    """Windows have the records that they should, are released once and when they are complete.

    On any number of workers, in rows and in columns, of all kinds, and what is late is apart.
    """
    rng = Random(seed)
    kind = rng.choice(["tumbling", "sliding", "sessions"])
    size, slide, offset = rng.randint(2, 9), rng.randint(1, 9), rng.choice([0, 0, 3])
    windows: Any = {
        "tumbling": ps.Tumbling(size, offset),
        "sliding": ps.Sliding(size, min(size, slide), offset),
        "sessions": ps.Sessions(size),
    }[kind]
    lateness = rng.choice([0, 0, 4])
    n_keys = rng.choice([1, 3, 3])
    sent = []
    at = 0
    for _ in range(rng.choice([3, 10])):
        events = [
            (rng.randrange(n_keys), max(0, at + rng.randint(-6, 12)), rng.randrange(100))
            for _ in range(rng.choice([0, 1, 4, 20]))
        ]
        sent.append((at, events))
        at += rng.choice([1, 2, 7])
    is_columns = rng.random() < 0.5
    has_key = rng.random() < 0.8

    def main(worker: ps.Worker) -> tuple[Found, Found]:
        complete: Found = []
        late: Found = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            key: Any = ("k" if is_columns else lambda r: r[0]) if has_key else None
            time: Any = "t" if is_columns else lambda r: r[1]
            held, behind = stream.window(windows, time=time, key=key, lateness=lateness)
            held.inspect_batch(lambda t, batch: complete.append((t, _plain(batch))))
            behind.inspect_batch(lambda t, batch: late.append((t, _plain(batch))))
        for now, events in sent:
            input.advance_to(now)
            for _ in range(seed % 3):
                worker.step()
            own = events[worker.index :: worker.peers]
            for start in range(0, len(own), 3):
                input.send_batch(_batch(own[start : start + 3], is_columns))
            for _ in range(now % 3):
                worker.step()
        input.close()
        worker.run()
        return complete, late

    workers = rng.choice([1, 2, 3])
    results = ps.simulate(main, workers=workers, seed=seed)
    on_time = [e for now, events in sent for e in events if e[1] >= now - lateness]
    late = sorted((now, e) for now, events in sent for e in events if e[1] < now - lateness)
    assert sorted((t, r) for _, own in results for t, batch in own for r in _each(batch)) == late
    expected = _expected(kind, windows, on_time, has_key)
    found = _found(results, is_columns, has_key)
    assert found == {
        (end + lateness, start, end, key): records
        for (start, end, key), records in expected.items()
    }


def _batch(events: list[tuple[int, int, int]], is_columns: bool) -> Any:
    if not is_columns:
        return events
    columns = np.array(events).reshape(-1, 3).T
    return Arrays(k=columns[0], t=columns[1], v=columns[2])


def _plain(batch: Any) -> Any:
    """A copy of what is seen, as lists; a batch of columns as rows."""
    if isinstance(batch, Arrays):
        columns = [batch[name].tolist() for name in batch.names]
        return list(zip(*columns, strict=True))
    return list(batch)


def _each(batch: list[Any]) -> list[tuple[int, int, int]]:
    return [tuple(row[:3]) for row in batch]


def _expected(
    kind: str, windows: Any, events: list[tuple[int, int, int]], has_key: bool
) -> dict[tuple[int, int, Any], list[tuple[int, int, int]]]:
    found = defaultdict(list)
    if kind != "sessions":
        for event in events:
            for start in range(event[1] - windows.size + 1, event[1] + 1):
                if (start - windows.offset) % windows.slide == 0:
                    key = event[0] if has_key else None
                    found[start, start + windows.size, key].append(event)
    else:
        by_key = defaultdict(list)
        for event in sorted(events, key=lambda e: e[1]):
            by_key[event[0] if has_key else None].append(event)
        for key, own in by_key.items():
            cut: list[list[tuple[int, int, int]]] = []
            for event in own:
                if cut and event[1] - cut[-1][-1][1] < windows.gap:
                    cut[-1].append(event)
                else:
                    cut.append([event])
            for part in cut:
                found[part[0][1], part[-1][1] + windows.gap, key] = part
    return {window: sorted(records) for window, records in found.items()}


def _found(results: list[tuple[Found, Found]], is_columns: bool, has_key: bool) -> dict[Any, Any]:
    found: dict[Any, Any] = defaultdict(list)
    if not is_columns:
        for complete, _ in results:
            for time, batch in complete:
                for window in batch:
                    at = (time, window.start, window.end, window.key)
                    assert at not in found, f"released twice: {at}"
                    found[at] = sorted(window.records)
        return dict(found)
    for complete, _ in results:
        for time, batch in complete:
            for *event, start, end in batch:
                found[time, start, end, event[0] if has_key else None].append(tuple(event))
    return {at: sorted(events) for at, events in found.items()}
