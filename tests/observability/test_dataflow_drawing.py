"""The drawing of a dataflow shows what was built: all of it, in frames, and nothing overlaps."""

from __future__ import annotations

import pickle
import time
import xml.etree.ElementTree as ET
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.observability.layered_layout import BETWEEN_ROWS, Box, in_order, layout
from pointstamp.operators.drawing import structure_of_scope
from pointstamp.runtime.watched_structure import structure_of

SVG = "{http://www.w3.org/2000/svg}"


def collatz(scope: ps.Scope) -> None:
    numbers = scope.to_stream([1, 2, 3])
    with scope.iterative(name="Rounds") as inner:
        loop, cycle = inner.feedback(1)
        both = numbers.enter(inner).concat(cycle).exchange(lambda x: x)
        done, rest = both.branch(lambda x: x > 5)
        loop.connect(rest.map(lambda x: x + 1))
        out = done.leave()
    out.probe()


def structure(build: Any) -> dict[str, Any]:
    def main(worker: ps.Worker) -> dict[str, Any]:
        with worker.dataflow("drawn") as scope:
            build(scope)
        return structure_of_scope(scope)

    (found,) = ps.execute(main)
    return found


def drawing(build: Any) -> ps.DataflowDrawing:
    found = structure(build)
    return ps.DataflowDrawing("drawn", found)


def test_a_scope_and_a_worker_know_the_same_structure() -> None:
    def main(worker: ps.Worker) -> tuple[Any, Any]:
        with worker.dataflow("drawn") as scope:
            collatz(scope)
        return structure_of_scope(scope), structure_of(worker)

    ((of_scope, of_worker),) = ps.execute(main)
    assert of_scope == of_worker


def test_a_scope_can_be_drawn_while_it_is_built_and_when_it_is_complete() -> None:
    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow("drawn") as scope:
            stream = scope.to_stream([1])
            before = repr(scope.drawing())
            stream.map(lambda x: x)
            between = repr(scope.drawing())
        worker.run()
        return [before, between, repr(scope.drawing())]

    (found,) = ps.execute(main)
    assert found == [
        "DataflowDrawing('drawn': 1 operator, 0 streams)",
        "DataflowDrawing('drawn': 2 operators, 1 stream)",
        "DataflowDrawing('drawn': 2 operators, 1 stream)",
    ]


def test_the_picture_has_a_box_and_a_line_for_each_part() -> None:
    found = structure(collatz)
    picture = ET.fromstring(ps.DataflowDrawing("drawn", found).svg())
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert sorted(texts) == sorted(each["name"] for each in found["operators"])
    assert len(list(picture.iter(f"{SVG}rect"))) == len(found["operators"])
    assert len(list(picture.iter(f"{SVG}path"))) == len(found["streams"])
    dashed = [each for each in picture.iter(f"{SVG}path") if "stroke-dasharray" in each.attrib]
    assert len(dashed) == 1  # what closes the loop


def test_mermaid_leads_through_the_borders_of_scopes() -> None:
    assert sorted(drawing(collatz).mermaid().splitlines()) == sorted(
        [
            "flowchart LR",
            '  subgraph n0["drawn"]',
            '    n0_1["ToStream"]',
            '    subgraph n0_2["Rounds"]',
            '      n0_2_1["Feedback"]',
            '      n0_2_2["Concatenate"]',
            '      n0_2_3["Exchange"]',
            '      n0_2_4["Branch"]',
            '      n0_2_5["Map"]',
            "    end",
            '    n0_3["Probe"]',
            "  end",
            "  n0_1 --> n0_2_2",
            "  n0_2_4 --> n0_3",
            "  n0_2_1 --> n0_2_2",
            "  n0_2_2 ==> n0_2_3",
            "  n0_2_3 --> n0_2_4",
            "  n0_2_4 --> n0_2_5",
            "  n0_2_5 -.-> n0_2_1",
        ]
    )


def test_names_of_users_are_no_markup() -> None:
    name = '<b>"& a name'
    found = drawing(lambda scope: scope.to_stream([1], name=name))
    assert name in [each.text for each in ET.fromstring(found.svg()).iter(f"{SVG}text")]
    assert '"&lt;b>&quot;&amp; a name"' in found.mermaid()
    found = drawing(lambda scope: scope.to_stream([1], name="\x1b[2J\x00"))
    assert "\ufffd[2J\ufffd" in [
        each.text for each in ET.fromstring(found.svg()).iter(f"{SVG}text")
    ]


def test_a_drawing_is_a_plain_value() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("drawn") as scope:
            collatz(scope)
        return scope.drawing()

    first, second = ps.execute(main, workers=2)
    assert first.svg() == second.svg()
    assert pickle.loads(pickle.dumps(first)).mermaid() == first.mermaid()


def test_a_notebook_is_given_a_picture_and_text() -> None:
    found = drawing(collatz)
    bundle = found._repr_mimebundle_()
    # JupyterLab draws the text of Mermaid, if there is one, and then not the picture.
    assert sorted(bundle) == ["image/svg+xml", "text/plain"]
    assert bundle["text/plain"] == repr(found)
    assert list(found._repr_mimebundle_({"text/plain"})) == ["text/plain"]
    assert "image/svg+xml" not in found._repr_mimebundle_(None, {"image/svg+xml"})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("drawn") as scope:
            collatz(scope)
        return scope._repr_mimebundle_(include=[], exclude=[])

    assert ps.execute(main) == [bundle]


def test_a_view_is_shown_by_its_dataflow_until_it_is_closed() -> None:
    view = ps.View(lambda scope, t: t.group_by("k").agg(n=ps.count()), t="k long")
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == repr(view)
    ET.fromstring(bundle["image/svg+xml"])
    view.insert("t", [(1,)])
    assert view.advance() == [((1, 1), 1)]
    assert view._repr_mimebundle_()["image/svg+xml"] == bundle["image/svg+xml"]
    view.close()
    assert view._repr_mimebundle_() == {"text/plain": repr(view)}


def test_a_view_that_is_closed_has_no_drawing() -> None:
    with ps.View(lambda scope, t: t.distinct(), t="k long") as view:
        pass
    with pytest.raises(ps.errors.InputError, match=r"drawing\(\): the view .* is closed"):
        view.drawing()


# Places.


def check_places(found: dict[str, Any]) -> None:
    """Every part has its place: boxes in their frames and apart, streams from box to box."""
    places = layout(found)
    operators = {each["address"]: each for each in found["operators"]}
    assert set(places.boxes) == set(operators)
    assert set(places.lines) == {each["stream"] for each in found["streams"]}
    for address, each in operators.items():
        if each["parent"]:
            assert is_within(places.boxes[address], places.boxes[each["parent"]])
    names = list(operators)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if operators[one]["parent"] == operators[other]["parent"]:
                assert are_apart(places.boxes[one], places.boxes[other]), (one, other)
    for each in found["streams"]:
        line = places.lines[each["stream"]]
        begin, end = line.points[0], line.points[-1]
        source, target = places.boxes[each["source"]], places.boxes[each["target"]]
        # At the edge of its operator; of the scope itself, at the other one, which is inside.
        assert begin[0] == pytest.approx(
            source.x if each["source"] == each["scope"] else source.x + source.width
        )
        assert end[0] == pytest.approx(
            target.x + target.width if each["target"] == each["scope"] else target.x
        )
        assert source.y <= begin[1] <= source.y + source.height
        assert target.y <= end[1] <= target.y + target.height
        if not line.is_back:
            assert [x for x, _ in line.points] == sorted(x for x, _ in line.points)
        frame = places.boxes[each["scope"]]
        for x, y in line.points:
            assert frame.x - 0.01 <= x <= frame.x + frame.width + 0.01
            assert frame.y - 0.01 <= y <= frame.y + frame.height + 0.01


def is_within(box: Box, frame: Box) -> bool:
    return (
        frame.x < box.x
        and frame.y < box.y
        and box.x + box.width < frame.x + frame.width
        and box.y + box.height < frame.y + frame.height
    )


def are_apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y + 0.01
        or other.y + other.height <= one.y + 0.01
    )


@st.composite
def programs(draw: st.DrawFn) -> Any:
    """What builds a dataflow of random operators, some of which are in scopes and loops."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["map", "concat", "branch", "loop", "region", "source"]),
                st.integers(0, 7),
                st.integers(0, 7),
            ),
            max_size=12,
        )
    )

    def build(scope: ps.Scope) -> None:
        build_steps(scope, scope.to_stream([1]), steps)

    return build


def build_steps(scope: ps.Scope, first: Any, steps: list[Any]) -> Any:
    streams = [first]
    for number, (what, i, j) in enumerate(steps):
        one, other = streams[i % len(streams)], streams[j % len(streams)]
        if what == "map":
            streams.append(one.map(lambda x: x, name="m" * (1 + 5 * j)))
        elif what == "concat":
            streams.append(one.concat(other))
        elif what == "branch":
            streams += one.branch(lambda x: x > 0)
        elif what == "source":
            streams.append(scope.to_stream([2]))
        elif what == "region":
            with scope.region() as inner:
                streams.append(build_steps(inner, one.enter(inner), steps[number + 1 :]).leave())
            break
        else:
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=2)
                both = one.enter(inner).concat(again)
                found = build_steps(inner, both, steps[number + 1 :])
                loop.connect(found)
                streams += [found.leave(), both.leave()]
            break
    return streams[-1]


@given(programs())
def test_boxes_are_in_their_frames_and_apart_whatever_is_built(build: Any) -> None:
    check_places(structure(build))


def test_a_frame_is_as_wide_as_its_name() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.region("the name of a region is longer") as inner:
            scope.to_stream([1]).enter(inner).leave()

    check_places(structure(build))


def test_a_thousand_operators_are_drawn_in_seconds() -> None:
    def build(scope: ps.Scope) -> None:
        streams = [scope.to_stream([n]) for n in range(20)]
        for number in range(980):
            streams[number % 20] = streams[number % 20].map(lambda x: x)

    found = structure(build)
    began = time.process_time()
    layout(found)
    assert time.process_time() - began < 60


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(0, 50)), min_size=1, max_size=12),
)
def test_values_keep_their_gaps_and_are_as_near_as_they_can(rows: list[Any]) -> None:
    wanted, gaps = [row[0] for row in rows], [row[1] for row in rows[1:]]
    found = list(in_order(wanted, gaps))
    for before, after, gap in zip(found, found[1:], gaps, strict=False):
        assert after - before >= gap - 1e-6
    # The mean of what is wanted is kept: moving all together makes it no better.
    assert sum(found) == pytest.approx(sum(wanted), abs=1e-6)
    if all(b - a >= gap for a, b, gap in zip(wanted, wanted[1:], gaps, strict=False)):
        assert found == pytest.approx(wanted)


def test_rows_of_one_layer_are_apart() -> None:
    assert list(in_order([0.0, 1.0, 50.0], [BETWEEN_ROWS] * 2)) == [-8.5, 9.5, 50.0]


def test_a_table_is_drawn_as_any_source() -> None:
    found = drawing(lambda scope: scope.to_stream(pa.table({"a": [1]}), name="Table"))
    assert "Table" in found.mermaid()


def test_a_scope_with_nothing_in_it_yet_is_drawn() -> None:
    def main(worker: Any) -> str:
        with worker.dataflow("nothing") as scope:
            return str(scope._repr_mimebundle_()["image/svg+xml"])

    (svg,) = ps.execute(main)
    assert ET.fromstring(svg).tag == f"{SVG}svg"
