"""Nothing that holds rows is in a circle: it goes at once, without Python looking for garbage.

Python looks when there are many objects, however much they hold.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.collections import changing_graphs
from pointstamp.collections.collection import Collection
from pointstamp.containers import Arrays
from pointstamp.dataflow.collector import collector_off

pytestmark = pytest.mark.once  # as sources the kernels take minutes for so many rows

N = 20_000

LIBC = ctypes.CDLL(None)


class _Allocated(ctypes.Structure):
    """What glibc's `mallinfo2` gives."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def allocated() -> int:
    """Bytes: of arrays, and of what is compiled; not of Python's small objects."""
    ask = LIBC.mallinfo2
    ask.restype = _Allocated
    found = ask()
    return int(found.uordblks + found.hblkhd)


PROGRAMS: dict[str, Callable[[Collection], Any]] = {
    "arrange": lambda edges: edges.arrange("src"),
    "distinct": lambda edges: edges.distinct(),
    "count": lambda edges: edges.group_by("src").count(),
    "top": lambda edges: edges.group_by("src").top_k(3, by="dst"),
    "join": lambda edges: edges.join(edges.rename({"dst": "other"}), on="src"),
    "left join": lambda edges: edges.join(edges.rename({"dst": "other"}), on="src", how="left"),
    "indexes": lambda edges: edges.arrange("src").join(edges.arrange("dst")),
    "components": changing_graphs.components,
}


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    with collector_off():
        yield
        gc.set_debug(0)
        gc.garbage.clear()


def columns(edges: np.ndarray) -> Arrays:
    return Arrays({"src": edges[:, 0].copy(), "dst": edges[:, 1].copy()})


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="needs to ask glibc what is allocated")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ends", ["complete", "dropped"])
def test_of_a_dataflow_that_has_ended_no_rows_are_kept(program: str, ends: str) -> None:
    drawn = np.random.default_rng(0).integers(0, N, (N, 2))

    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            edges, collection = scope.new_collection("src long, dst long")
            PROGRAMS[program](collection)
        edges.insert(columns(drawn))
        edges.advance_to(1)
        most = 0
        for _ in range(50):  # in a loop, not to its end: merges are under way
            worker.step()
            most = max(most, allocated())
        if ends == "dropped":
            worker.drop_dataflow(scope)
        edges.close()
        worker.run()
        # A program may still know what it has built.
        return most, allocated(), collection

    ps.execute(main)  # what is imported, and kept for all dataflows
    gc.collect()
    before = allocated()
    ((most, after, _),) = ps.execute(main)
    assert most - before > drawn.nbytes
    assert after - before < drawn.nbytes / 2


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="needs to ask glibc what is allocated")
def test_of_a_view_that_is_closed_no_rows_are_kept() -> None:
    drawn = np.random.default_rng(0).integers(0, N, (N, 2))

    def used() -> int:
        with ps.View(
            lambda scope, edges: edges.distinct().count(), edges="src long, dst long"
        ) as v:
            v.insert("edges", columns(drawn))
            v.advance()
            return allocated()

    used()
    gc.collect()
    before = allocated()
    assert used() - before > drawn.nbytes
    assert allocated() - before < drawn.nbytes / 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_changes_leave_nothing_in_circles(program: str) -> None:
    random = np.random.default_rng(0)
    there = random.integers(0, N, (N, 2))

    def main(worker: Any) -> list[Any]:
        with worker.dataflow() as scope:
            edges, collection = scope.new_collection("src long, dst long")
            found = PROGRAMS[program](collection)
            probe = found.probe() if isinstance(found, Collection) else collection.probe()
        edges.insert(columns(there))

        def change() -> None:
            some = random.choice(N, 300, replace=False)
            edges.delete(columns(there[some]))
            there[some] = random.integers(0, N, (len(some), 2))
            edges.insert(columns(there[some]))
            edges.advance_to(edges.time + 1)
            worker.step_while(lambda: probe.less_than(edges.time))

        for _ in range(5):
            change()
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        for _ in range(30):
            change()
        gc.collect()
        left = [each for each in gc.garbage if type(each).__module__.startswith("pointstamp")]
        edges.close()
        return left

    assert ps.execute(main) == [[]]
