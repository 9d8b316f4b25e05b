"""Words of other libraries, and of other parts of this one: the error has the right one."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp.operators import names_elsewhere
from pointstamp.testing import collect


@pytest.mark.parametrize(
    ("options", "here"),
    [
        ({"on": "a"}, "takes key=, and no on="),
        ({"left_on": "a", "right_on": "b"}, "takes key= and other_key=, and no left_on="),
    ],
)
def test_a_join_of_streams_has_a_key(options: dict[str, Any], here: str) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([("a", 1)])
        with pytest.raises(TypeError, match=f"of streams {here}"):
            stream.join(stream, **options)
        return stream

    collect(build)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda scope, s: s.sideOutputLateData, "here: the second stream that a window"),
        (lambda scope, s: s.allowedLateness, "here: windows take time=, lateness="),
        (lambda scope, s: s.stateful_flat_map, "here: state_machine folds by key"),
        (lambda scope, s: scope.fromCollection, r"here: to_stream\(records\), or new_input\(\)"),
        (lambda scope, s: scope.fromSource, "here: source, or async_source"),
    ],
)
def test_methods_by_names_of_other_engines_are_answered_with_those_here(
    act: Any, said: str
) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([("a", 1)])
        with pytest.raises(AttributeError, match=said):
            act(scope, stream)
        return stream

    collect(build)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda s: s.count(key="a"), r"count\(\) .* counts by key\), and no key="),
        (lambda s: s.distinct(subset="a"), r"distinct\(\) .* one of a key\), and no subset="),
        (lambda s: s.top_k(1, descending=True), r"top_k\(\) .* the least\), and no descending="),
    ],
)
def test_arguments_by_names_of_other_libraries_are_refused_with_what_does(
    act: Any, said: str
) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([("a", 1)])
        with pytest.raises(TypeError, match=said):
            act(stream)
        return stream

    collect(build)


def test_a_wrong_argument_is_one_of_a_method_of_streams() -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([("a", 1)])
        with pytest.raises(TypeError, match=r"^Stream\.window\(\) got .* argument 'size'"):
            stream.window(size=10)
        with pytest.raises(TypeError, match=r"^Stream\.as_collection\(\) missing 1 .* 'schema'$"):
            stream.as_collection()
        return stream

    collect(build)


@pytest.mark.parametrize("schema", ["a long", None])
def test_a_join_of_collections_is_on_columns(schema: Any) -> None:
    def build(scope: Any, given: Any) -> Any:
        with pytest.raises(TypeError, match="of collections takes on=, and no key="):
            given.join(given, key="a")
        with pytest.raises(TypeError, match="takes left_on= and right_on=, and no other_key="):
            given.join(given, on="a", other_key="a")
        return given

    ps.View(build, given=schema).close()


def test_a_name_that_is_nearly_right_is_advised() -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([(1,)])
        for owner, wrong, right in (
            (stream, "mpa", "map"),
            (stream, "flatmap", "flat_map"),
            (scope, "to_steam", "to_stream"),
            (stream.as_collection("n long"), "filtr", "filter"),
        ):
            with pytest.raises(AttributeError, match=f"{wrong!r}; did you mean {right!r}"):
                getattr(owner, wrong)
        with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'$"):
            stream.xyzzy  # noqa: B018
        return stream

    collect(build)


def test_what_another_library_calls_an_operator_of_tables_is_said_to_be_otherwise_here() -> None:
    def build(scope: Any, t: Any) -> Any:
        for name, words in (
            ("join_map", r"'join_map'; here: join\(other, on=, how=\), then select or map"),
            ("reduce_abelian", r"'reduce_abelian'; here: group_by\(...\).reduce"),
            ("arrange_by_key", r"'arrange_by_key'; here: arrange\(\*key\)"),
            ("asof_join", "'asof_join'; here: .* ps.max_by"),
        ):
            with pytest.raises(AttributeError, match=words):
                getattr(t, name)
        return t

    ps.View(build, t="a long")
    ps.View(build, t=None)


def test_a_column_is_no_attribute_and_an_aggregate_no_method() -> None:
    def build(scope: Any, t: Any) -> Any:
        for call, error, words in (
            (lambda: t.shop, AttributeError, r"no attribute 'shop'; .* ps\.col\('shop'\)"),
            (lambda: t["shop"], TypeError, r"no items: a column is written ps\.col\('shop'\)"),
            (lambda: ps.col("n").sum(), AttributeError, r"'sum'; here: agg\(x=ps\.sum\(column"),
            (lambda: ps.col("n").isnull(), AttributeError, "'isnull'; here: is_null"),
            (lambda: ps.col("n").is_nul(), AttributeError, "did you mean 'is_null'"),
        ):
            with pytest.raises(error, match=words):
                call()
        return t

    ps.View(build, t="shop string, n long")


def test_no_advice_is_of_a_name_that_there_is() -> None:
    for owner, elsewhere in (
        (ps.Stream, names_elsewhere.OF_STREAMS),
        (ps.Collection, names_elsewhere.OF_COLLECTIONS),
        (type(ps.col("n")), names_elsewhere.OF_EXPRESSIONS),
    ):
        assert [name for name in elsewhere if hasattr(owner, name)] == []
