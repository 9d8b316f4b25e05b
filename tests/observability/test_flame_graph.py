"""Flame graphs of logs: boxes that add up, and a picture that any browser can show."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pointstamp as ps
from pointstamp.errors import FileFormatError
from pointstamp.observability.flame_graph import (
    FlameBox,
    flame_boxes,
    flame_graph,
    write_flame_graph,
)

HOSTILE = "<script>&\"' \x1b[2J"


def rounds(worker: ps.Worker) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        with scope.iterative() as inner:
            stream = stream.exchange().enter(inner).map(lambda x: x, name=HOSTILE).leave()
        probe = stream.probe()
    for epoch in range(3):
        for x in range(10):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("run")
    ps.execute(rounds, workers=2, threads=True, log=ps.Log(folder))
    return ps.observability.read(folder)


def below(box: FlameBox) -> list[FlameBox]:
    return [box, *(each for part in box.parts.values() for each in below(part))]


def test_boxes_have_the_times_of_operators_and_add_up_to_those_of_workers(run: Any) -> None:
    whole = flame_boxes(run)
    summary = ps.observability.summarize(run)
    for each in summary.operators:
        boxes = [box for box in below(whole) if box.address == each.address]
        assert {box.name for box in boxes} == {each.name}
        assert sum(box.own for box in boxes) == each.self_time
        assert sum(box.activations for box in boxes) == each.activations
    for worker in summary.workers:
        box = whole.parts[str(worker.worker)]
        assert box.total == worker.elapsed
        assert sum(part.own for part in box.parts.values() if part.name == "parked") == (
            worker.parked
        )
    # A dataflow holds the scope, and that its operators.
    (of_scope,) = (box for box in below(whole.parts["0"]) if box.name == "Iterative")
    assert [part.address for part in of_scope.parts.values()] == [f"{of_scope.address}/1"]


def test_a_picture_has_boxes_on_their_own_and_their_numbers_in_titles(
    run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "out.svg"
    write_flame_graph(run, path)
    svg = "{http://www.w3.org/2000/svg}"
    groups = list(ElementTree.parse(path).getroot().iter(f"{svg}g"))
    places = []
    for group in groups:
        rect = group.find(f"{svg}rect")
        assert rect is not None
        places.append(tuple(float(rect.attrib[name]) for name in ("x", "y", "width")))
    assert (places[0][0], places[0][2]) == (10, 1200)
    for left, at, wide in places[1:]:
        assert any(
            a - 0.02 <= left and left + wide <= a + w + 0.02 for a, b, w in places if b == at + 20
        )
    titles = [group.findtext(f"{svg}title") for group in groups]
    assert str(titles[0]).startswith("all workers: ")
    assert any("rounds [0]: " in str(title) and "activations" in str(title) for title in titles)


def test_a_log_of_nothing_has_one_box() -> None:
    picture = ElementTree.fromstring(flame_graph(FlameBox("all workers"), "ns"))
    assert picture.attrib["height"] == "40"


def test_a_picture_that_cannot_be_written_is_an_error(run: Any, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="there is no directory"):
        write_flame_graph(run, tmp_path / "nowhere" / "out.svg")
