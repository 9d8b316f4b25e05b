"""The grammar of motifs: what is read, and where errors point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import PatternError
from pointstamp.graph import parse_pattern


def test_vertices_are_numbered_as_they_appear():
    pattern = parse_pattern("(b)-[]->(a); (a)-[]->(c2); (b)-[]->(c2)")
    assert pattern.names == ("b", "a", "c2")
    assert pattern.edges == ((0, 1), (1, 2), (0, 2))
    assert pattern.absent == ()


def test_space_is_allowed_between_any_two_signs():
    pattern = parse_pattern(" ( a )\n -[ e ] ->\t( b ) ;(b)-[]->( c ) ")
    assert pattern.columns == ("a", "b", "c")


def test_a_vertex_without_a_name_is_a_vertex_of_its_own_each_time():
    pattern = parse_pattern("(a)-[]->(); (a)-[]->()")
    assert pattern.names == ("a", None, None)
    assert pattern.edges == ((0, 1), (0, 2))
    assert pattern.columns == ("a",)
    assert pattern.outputs == (0,)


def test_edges_may_be_denied_and_may_be_loops():
    pattern = parse_pattern("(a)-[e1]->(b); !(b)-[]->(a); (a)-[e2]->(a)")
    assert pattern.edges == ((0, 1), (0, 0))
    assert pattern.absent == ((1, 0),)


def test_a_loop_is_a_term_beside_others_and_alone_a_filter_says_the_message():
    assert parse_pattern("(a)-[]->(b); !(a)-[]->(a)").absent == ((0, 0),)
    assert parse_pattern("(a)-[]->(a); (a)-[]->()").edges == ((0, 0), (0, 1))
    for alone in ("(a)-[]->(a)", "(a)-[loop]->(a)"):
        with pytest.raises(PatternError, match="source is their target, keep those by a filter"):
            parse_pattern(alone)


MISTAKES = {
    # text: (what the message says, and under it the caret)
    "": ("'(' was expected", "^"),
    "a-[]->(b)": ("to begin a vertex", "^"),
    "(a": ("')' was expected", "  ^"),
    "(a-[]->(b)": ("to end a vertex", "  ^"),
    "(a)": ("'-[' was expected", "   ^"),
    "(a)-[]>(b)": ("'->' was expected", "      ^"),
    "(a)-[]-(b)": ("directed", "      ^"),
    "(a)<-[]-(b)": ("source to target", "   ^"),
    "(a)-[e f]->(b)": ("']' was expected", "       ^"),
    "(a)-[]->(b);": ("to begin a vertex", "            ^"),
    "(a)-[]->(b) (b)-[]->(c)": ("';' was expected", "            ^"),
    "(a)-[]->(b), (b)-[]->(c)": ("';' was expected", "           ^"),
    "(ä)-[]->(b)": ("to end a vertex", " ^"),
    "(a)-[]->(b); (a)-[]->(b)": ("is named twice", "             ^"),
    "(a)-[]->(b); !(a)-[]->(b)": ("both demanded and denied", "             ^"),
    "(a)-[e]->(b); (b)-[e]->(c)": ("'e' is used twice", "                   ^"),
    "(a)-[b]->(b)": ("names a vertex", "     ^"),
    "(a)-[]->(a)": ("at least two vertices", " ^"),
    "(a)-[]->(b); (c)-[]->(d)": ("not connected", "             ^"),
    "(a)-[]->(b); !(b)-[]->(c)": ("only in an edge that must be absent", "             ^"),
    "!(a)-[]->(b)": ("only in an edge that must be absent", "^"),
    "(a)-[]->(b);\n(b)-[]->c": ("to begin a vertex", "        ^"),
    "; ".join(f"(v{i})-[]->(v{i + 1})" for i in range(8)): ("at most 8", " " * (7 * 15 + 10) + "^"),
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:30] or "nothing")
def test_a_mistake_is_pointed_at(text):
    problem, caret = MISTAKES[text]
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    message, line, pointer = str(caught.value).splitlines()
    assert problem in message
    assert line == "    " + (text.splitlines() or [""])[-1]
    assert pointer == "    " + caret


def test_what_is_no_text_is_said_so():
    with pytest.raises(PatternError, match="not 3"):
        parse_pattern(3)


def test_eight_vertices_are_not_too_many():
    text = "; ".join(f"(v{i})-[]->(v{i + 1})" for i in range(7))
    assert len(parse_pattern(text).names) == 8


@given(st.text(alphabet="()[]->!;ab ", max_size=30))
def test_whatever_is_written_is_read_or_pointed_at(text):
    try:
        pattern = parse_pattern(text)
    except PatternError as error:
        pointer = str(error).splitlines()[-1]
        assert pointer.strip() == "^"
        assert len(pointer) - 4 <= len(text) + 1
    else:
        assert 2 <= len(pattern.names) <= 8
        assert len(set(pattern.edges)) == len(pattern.edges)
