"""Collections that follow streams of Spark: each batch an epoch, once, whatever happens."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import pointstamp as ps
import pointstamp.spark
from pointstamp.collections.schema import schema_of
from pointstamp.errors import CheckpointError, SchemaError, StoppedError, UsageError
from pointstamp.service.protocol import AwaitStaged, CommitEpoch
from pointstamp.spark.feed_forms import check_columns
from pointstamp.spark.frame_commits import FrameCommits
from tests.spark.test_collection_service import report

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCHEMAS = {"sales": "shop long, item string?, cents long", "shops": "shop long, city string"}
NOW = {"availableNow": True}

Change = tuple[tuple[Any, ...], int]
KINDS = {1: ["insert", "update_postimage"], -1: ["delete", "update_preimage"]}


class Files:
    """A stream of a folder, which has a batch for each file; it stands for a table's feed."""

    def __init__(self, spark: Any, folder: Path, columns: str) -> None:
        self.spark = spark
        self.folder = folder
        self.columns = columns
        folder.mkdir()
        self._n = 0

    def put(self, *rows: tuple[Any, ...]) -> None:
        """One file more, of these rows."""
        made = self.folder.with_name(f"{self.folder.name} {self._n}")
        self.spark.createDataFrame(rows, self.columns).coalesce(1).write.parquet(str(made))
        (part,) = made.glob("*.parquet")
        os.utime(part, (1e9 + self._n, 1e9 + self._n))  # Spark takes them in this order
        part.rename(self.folder / f"{self._n}.parquet")
        self._n += 1

    def put_changes(self, changes: list[Change]) -> None:
        """The same of changes, as rows of a change data feed."""
        kinds = {diff: KINDS[diff][self._n % 2] for diff in (1, -1)}
        self.put(*((*row, kinds[diff], 7) for row, diff in changes))

    @property
    def stream(self) -> Any:
        reader = self.spark.readStream.schema(self.columns).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Callable[[str, str], Files]:
    return lambda name, columns: Files(spark, tmp_path / name, columns)


FEED = "_change_type string, _commit_version long"
SALES_FEED = f"shop long, item string, cents long, {FEED}"
SHOPS_FEED = f"shop long, city string, {FEED}"


def run(query: Any) -> None:
    """To the end of what is there."""
    query.awaitTermination()
    assert query.exception() is None


def forget_commit(tmp_path: Path, place: str, batch: int) -> None:
    """As if the driver had been killed after the service's commit, before Spark's note of it."""
    commits = tmp_path / "service" / "queries" / "in" / place / "commits"
    (commits / str(batch)).unlink()
    (commits / f".{batch}.crc").unlink(missing_ok=True)


def test_program_two_as_far_as_what_goes_in(spark: Any, files: Any, tmp_path: Path) -> None:
    """Each batch of two feeds is an epoch, whose changes are those of a view."""
    sales, shops = files("sales", SALES_FEED), files("shops", SHOPS_FEED)
    steps: list[tuple[str, list[Change]]] = [
        ("shops", [((1, "Rome"), 1), ((2, "Oslo"), 1)]),
        ("sales", [((1, "tea", 1_200), 1), ((2, None, 3_000), 1), ((2, "ink", 400), 1)]),
        ("sales", [((2, None, 3_000), -1), ((1, "tea", 1_200), -1), ((1, "tea", 1_500), 1)]),
        ("shops", [((1, "Rome"), -1), ((1, "Bari"), 1)]),
        ("sales", [((2, "pen", 9_000), 1), ((2, "pen", 9_000), 1)]),
    ]
    options = {"collections": SCHEMAS, "checkpoint": tmp_path / "service"}
    with (
        ps.View(report, **SCHEMAS) as view,
        pointstamp.spark.serve(report, spark, 2, **options) as service,
    ):
        feeds = {"sales": sales, "shops": shops}
        for epoch, (name, changes) in enumerate(steps):
            feeds[name].put_changes(changes)
            run(service.input(name).follow(feeds[name].stream, "cdf", trigger=NOW))
            view.update(name, changes)
            # A batch waits for its epoch: it is complete.
            assert service.status().last_complete("result") == epoch
            assert service.output().changes(epoch)[:] == view.advance()[:]
        # Both at once, and something that is sent by hand besides.
        queries = [service.input(name).follow(feeds[name].stream, form="cdf") for name in feeds]
        service.input("sales").insert([(1, "cup", 5_000)])
        service.advance()
        for name, feed in feeds.items():
            for shop in (10, 11):
                row = (shop, "x", 7_000) if name == "sales" else (shop, f"city {shop}")
                feed.put_changes([(row, 1)])
                view.insert(name, [row])
        view.insert("sales", [(1, "cup", 5_000)])
        view.advance()
        for query in queries:
            query.processAllAvailable()
        assert service.output().snapshot()[:] == view.snapshot()[:]
        assert service.input("sales").time == len(steps) + 5
        with pytest.raises(
            UsageError, match=r"input 'sales': a query is at work in .*queries/in/sa"
        ):
            service.input("sales").follow(sales.stream, "cdf")
    assert not any(query.isActive for query in queries)


def test_a_batch_that_is_repeated_changes_nothing_in_this_life_and_in_the_next(
    spark: Any, files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = files("t", "a long, n int")
    options = {"collections": {"t": "a long"}, "checkpoint": tmp_path / "service"}
    options["snapshot_every"] = 2

    def build(scope: Any, t: Any) -> Any:
        return t.group_by("a").count()

    def follow(service: ps.Service) -> None:
        run(service.input("t").follow(changes.stream, "diff", diff="n", trigger=NOW))

    def load(service: ps.Service) -> int:
        epoch: int = service.input("t").load(spark.sql("select 9L as a"), once="nine")
        return epoch

    changes.put((1, 2), (2, 1), (3, 0))
    changes.put((1, -1))
    first = pointstamp.spark.serve(build, spark, 1, **options)
    ask = first.ask

    def fail(request: Any, *args: Any) -> Any:
        if isinstance(request, CommitEpoch):
            raise CheckpointError("the disk is full")
        return ask(request, *args)

    monkeypatch.setattr(first, "ask", fail)
    with pytest.raises(CheckpointError, match="the disk is full"):
        load(first)
    monkeypatch.undo()
    assert first.ask(AwaitStaged("t", 1, 60.0)) == 0  # what was staged for it is dropped
    assert (load(first), load(first)) == (0, 0)
    follow(first)
    forget_commit(tmp_path, "t", 1)
    follow(first)
    assert first.input("t").time == 3
    assert first.output().snapshot(2) == [(1, 1), (2, 1), (9, 1)]
    for _ in range(4):
        first.advance()
    assert first.await_snapshot(1)
    forget_commit(tmp_path, "t", 1)
    first.abort()
    with pointstamp.spark.serve(build, spark, 2, **options) as second:
        changes.put((5, 1))
        assert load(second) == 0
        follow(second)
        assert second.input("t").time == 8
        assert second.output().snapshot(7) == [(1, 1), (2, 1), (5, 1), (9, 1)]
        assert second.output().changes(7) == [((5, 1), 1)]


def test_an_end_between_staging_and_commit_loses_nothing(
    spark: Any, files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the query's thread, before and after the commit; and of a worker, before it."""

    def build(scope: Any, t: Any) -> Any:
        (tmp_path / "worker").write_text(str(os.getpid()))
        return t.group_by("a").count()

    rows = files("t", "a long")
    staged = FrameCommits._staged
    ends: list[str] = []

    def end(self: FrameCommits, *args: Any) -> Any:
        handles = staged(self, *args)
        match ends.pop(0) if ends else "":
            case "query":
                raise KeyError("the thread of the query ends here")
            case "worker":
                os.kill(int((tmp_path / "worker").read_text()), signal.SIGKILL)
        return handles

    monkeypatch.setattr(FrameCommits, "_staged", end)
    policy = ps.RestartPolicy(delay_s=0.0)
    options = {"collections": {"t": "a long"}, "checkpoint": tmp_path / "service"}
    with pointstamp.spark.serve(build, spark, 1, restart=policy, **options) as service:
        input = service.input("t")
        for epoch, how in enumerate(["query", "worker", "worker"]):
            rows.put((epoch,), (7,))
            ends.append(how)
            if how == "query":
                query = input.follow(rows.stream, "append", trigger=NOW)
                with pytest.raises(StreamingQueryException, match="of the query ends here"):
                    query.awaitTermination()
                assert input.time == epoch
            run(input.follow(rows.stream, "append", trigger=NOW))
            assert input.time == epoch + 1
            assert service.output().snapshot(epoch)[-1] == (7, epoch + 1)
        assert not ends


@pytest.mark.parametrize(
    ("form", "columns", "row", "said"),
    [
        ("cdf", FEED, ("upsert", 1), "'_change_type' is 'upsert', and should be one of insert, d"),
        ("cdf", FEED, (None, 1), "'_change_type' is None, and should be one of insert"),
        ("diff", "n long", (None,), "the diff, column 'n', is null, and should be an integer"),
    ],
)
def test_a_row_that_does_not_fit_ends_the_query_and_commits_nothing(
    shared: Any, files: Any, form: str, columns: str, row: tuple[Any, ...], said: str
) -> None:
    bad = files("bad", f"a long, b string, {columns}")
    bad.put((1, "x", *row), (2, "y", *row))
    before = shared.input("t").time
    diff = "n" if form == "diff" else None
    query = shared.input("t").follow(bad.stream, form, diff=diff, name=said[:30], trigger=NOW)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    assert f"DataError: input 't', batch 0 of query {query.id}: {said}" in str(caught.value)
    assert "the row is {'a': 1, 'b': 'x', " in str(caught.value)
    assert shared.input("t").time == before


@pytest.fixture(scope="module")
def shared(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service for what is refused."""
    folder = tmp_path_factory.mktemp("shared")
    with pointstamp.spark.serve(
        lambda scope, t: t, spark, 1, collections={"t": "a long, b string?"}, checkpoint=folder
    ) as service:
        assert service.input("t").time == 0  # a link connects with the first call, and stays so
        yield service


def test_of_a_job_that_fails_nothing_stays_staged(spark: Any, shared: Any) -> None:
    rows = spark.range(0, 4, 1, 2)  # the first partition is staged, the second fails
    bad = rows.selectExpr("id as a", "if(id < 2, 'x', string(assert_true(false, 'no'))) as b")
    with pytest.raises(Exception, match="no"):
        shared.input("t").load(bad)
    assert shared.ask(AwaitStaged("t", 1, 10.0)) == 0
    shared.input("t").load(rows.selectExpr("id as a", "string(id) as b"))


def test_what_cannot_be_followed_is_refused_before_it_starts(
    spark: Any, shared: Any, files: Any
) -> None:
    t, rows = shared.input("t"), files("rows", f"a long, b string, n double, {FEED}").stream
    feed = rows.drop("n")
    for frame, form, options, error, text in [
        (rows, "cdf", {}, SchemaError, "input 't' is given a DataFrame that has 'n' besides: its"),
        (feed.drop("b"), "cdf", {}, SchemaError, "that lacks 'b': its columns are a, _change_type"),
        (rows.select("a", "b"), "cdf", {}, SchemaError, "lacks '_change_type'"),
        (feed, "append", {}, SchemaError, "has '_change_type', '_commit_version' besides"),
        (rows, "diff", {"diff": "n"}, SchemaError, "has '_change_type', '_commit_version' besides"),
        (
            *(rows.select("a", "b", "n"), "diff", {"diff": "n"}, SchemaError),
            "column 'n' of Spark's type double, and it should be bigint or int or",
        ),
        (
            *(feed.selectExpr("a", "b", "1 as _change_type"), "cdf", {}, SchemaError),
            "column '_change_type' of Spark's type int, and it should be string: cast it",
        ),
        (
            *(feed.withColumn("a", feed.a.cast("int")), "cdf", {}, SchemaError),
            "column 'a' of Spark's type int, and it should be long: cast it, or say int in",
        ),
        (
            *(feed.selectExpr("a", "timestamp'2026-01-01' as b"), "append", {}, SchemaError),
            "column 'b' of Spark's type timestamp, and it should be string: cast it, or say time",
        ),
        (rows, "diff", {}, UsageError, 'form="diff" needs diff=, the column that has the diffs'),
        (feed, "cdf", {"diff": "n"}, UsageError, 'form="diff" needs diff=, the column that'),
        (rows, "diff", {"diff": "a"}, UsageError, "diff='a' is a column of the collection"),
        (feed, "upserts", {}, UsageError, r"declared with its key, as collections=.*UpsertInput"),
        (feed, "merge", {}, UsageError, "form='merge' is none; there are 'append', 'cdf', 'diff'"),
        (spark.range(3), "append", {}, UsageError, r"no stream: load\(...\) takes it"),
    ]:
        with pytest.raises(error, match=text):
            t.follow(frame, form, **options)
    with pytest.raises(UsageError, match=r"load a stream: have it follow that, by follow\(...\)"):
        t.load(feed)
    with (
        pointstamp.spark.serve(lambda scope, t: t, spark, 1, collections={"t": "a long"}) as other,
        pytest.raises(UsageError, match=r"input 't': follow\(\) needs a service with a checkpoint"),
    ):
        other.input("t").follow(rows.select("a"), "append")


def test_times_with_a_zone_and_without_are_told_apart(spark: Any) -> None:
    frame = spark.sql("SELECT timestamp'2026-01-01' t")
    with pytest.raises(
        SchemaError,
        match=r"Spark's type timestamp \(with a zone\), and it should be timestamp \(timestamp_nt"
        r"z of Spark's\): cast it, or say timestamp_utc in",
    ):
        check_columns(frame.schema, schema_of("t timestamp"), "input 't'", {})
    check_columns(frame.schema, schema_of("t timestamp_utc"), "input 't'", {})


def test_a_query_of_a_service_that_is_closed_says_so(
    spark: Any, files: Any, tmp_path: Path
) -> None:
    rows = files("t", "a long")
    rows.put((1,))
    service = pointstamp.spark.serve(
        lambda scope, t: t, spark, 1, collections={"t": "a long"}, checkpoint=tmp_path / "service"
    )
    query = service.input("t").follow(rows.stream, "append")
    began = time.monotonic()
    service.stop()
    assert time.monotonic() - began < 60
    assert not query.isActive
    with pytest.raises(StoppedError):
        service.input("t").load(spark.range(3).withColumnRenamed("id", "a"))
