"""Services whose inputs and outputs are collections."""

from __future__ import annotations

import re
import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import (
    BuildError,
    DataError,
    EpochError,
    InputError,
    SchemaError,
    StoppedError,
    UsageError,
)
from pointstamp.service.protocol import AdvanceInput, CommitEpoch, ReadEpochs
from pointstamp.service.service_worker import ServiceWorker
from tests.collections.loops import loop_programs
from tests.collections.programs import SCHEMA, Program, programs
from tests.conftest import examples
from tests.service.direct import workers_of

SALES = "shop long, item string?, cents long"


def report(scope: Any, sales: Any, shops: Any) -> Any:
    big = sales.filter(ps.col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))


def serve_report(workers: int = 2, **options: Any) -> ps.Service:
    collections = {"sales": SALES, "shops": "shop long, city string"}
    return ps.serve(report, workers, collections=collections, **{"threads": True, **options})


@pytest.mark.parametrize("read", ["changes", "read", "snapshot"])
def test_what_another_thread_stops_meanwhile_is_read_all_the_same(
    read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_report() as service:
        service.input("shops").insert([(1, "Rome")])
        service.input("sales").insert([(1, "tea", 1_200)])
        service.advance()
        output, read_all = service.output("result"), service.read_all
        expected = getattr(output, read)(0)

        def stop_first(request: ReadEpochs) -> Any:
            monkeypatch.undo()
            service.stop()
            return read_all(request)

        monkeypatch.setattr(service, "read_all", stop_first)
        found = getattr(output, read)(0)
        assert service.is_over
        assert list(found) == list(expected)


@pytest.mark.parametrize("threads", [True, False])
def test_changes_and_snapshots_of_epochs(threads: bool) -> None:
    with serve_report(threads=threads) as service:
        sales, shops = service.input("sales"), service.input("shops")
        shops.insert([(1, "Rome"), (2, "Oslo")])
        sales.insert([(1, "tea", 1_200), (2, None, 3_000), (2, "ink", 400)])
        assert service.advance() == 0
        sales.delete([(2, None, 3_000)])
        assert (service.advance(), service.advance()) == (1, 2)
        output = service.output("result")
        assert output.changes(0) == [(("Oslo", 1, 3_000), 1), (("Rome", 1, 1_200), 1)]
        assert output.changes(1) == [(("Oslo", 1, 3_000), -1)]
        assert output.changes(2) == []
        assert output.changes(2, after=-1) == [(("Rome", 1, 1_200), 1)]
        assert [epoch for epoch, _ in output] == [0, 1]
        assert [output.snapshot(epoch)[:] for epoch in (0, 1)] == [
            [("Oslo", 1, 3_000), ("Rome", 1, 1_200)],
            [("Rome", 1, 1_200)],
        ]
        sales.insert(pa.table({"shop": [1], "item": ["pen"], "cents": [5_000]}))
    # What was sent is committed, and read, before the workers end.
    assert output.read()[-1] == (3, [(("Rome", 1, 1_200), -1), (("Rome", 2, 6_200), 1)])
    assert output.snapshot(3) == [("Rome", 2, 6_200)]
    assert output.snapshot(0) == [("Oslo", 1, 3_000), ("Rome", 1, 1_200)]


def test_what_is_discarded_is_added_up() -> None:
    def build(scope: Any, t: Any) -> Any:
        return t

    with ps.serve(build, 2, threads=True, collections={"t": "a string"}) as service:
        output = service.output()
        for epoch in range(6):
            service.input("t").insert([("x",), (str(epoch),)])
            service.input("t").delete([(str(epoch - 1),)] if epoch else [])
            service.advance()
        output.probe.wait(5)
        output.discard(3)
        assert output.snapshot(3) == [("3",), ("x",), ("x",), ("x",), ("x",)]
        assert output.snapshot() == [("5",), *[("x",)] * 6]
        assert output.read() == [
            (4, [(("3",), -1), (("4",), 1), (("x",), 1)]),
            (5, [(("4",), -1), (("5",), 1), (("x",), 1)]),
        ]
        with pytest.raises(EpochError, match="snapshot as of epoch 2: what came up to epoch 3"):
            output.snapshot(2)
        with pytest.raises(EpochError, match="from epoch 2: what came up to epoch 3 is discarded"):
            output.changes(2)
    with pytest.raises(EpochError, match="snapshot as of epoch 2: what came up to epoch 3"):
        output.snapshot(2)
    assert output.changes(5, after=3) == [(("3",), -1), (("5",), 1), (("x",), 2)]


def test_what_is_discarded_may_add_up_to_nothing() -> None:
    with ps.serve(lambda scope, t: t, 1, threads=True, collections={"t": "a string"}) as service:
        output = service.output()
        service.input("t").insert([("x",)])
        service.advance()
        service.input("t").delete([("x",)])
        output.probe.wait(service.advance())
        output.discard(1)
        assert output.snapshot() == []
    assert output.snapshot() == output.snapshot(1) == []
    output.discard(7)
    assert output.snapshot() == []


def test_several_collections_and_streams_together() -> None:
    def build(scope: Any, words: Any, t: Any) -> Any:
        return {"words": words.exchange("w"), "t": t, "n": t.count()}

    word = {"w": pa.string()}
    with ps.serve(
        build,
        2,
        threads=True,
        inputs={"words": word},
        outputs={"words": word},
        collections={"t": "a long, diff long"},
    ) as service:
        service.input("words").send([{"w": "a"}])
        service.input("t").update([((7, 1), 3), ((8, 1), -1)])
        assert service.advance() == 0
        # The stream holds back what it leads to, and nothing else.
        assert service.output("t").changes(0) == [((7, 1), 3), ((8, 1), -1)]
        assert service.output("n").changes(0) == [((2,), 1)]
        assert service.output("t").changes(0).to_arrow().column_names == ["a", "diff", "diff_"]
        with pytest.raises(DataError, match=re.escape("the row (8, 1) fewer than no times")):
            service.output("t").snapshot(0)
        service.input("words").advance_to(1)
        assert service.output("words").collect(upto=0).to_pylist() == [{"w": "a"}]
        with pytest.raises(UsageError, match="'words' is a stream, and only collections have"):
            workers_of(service)[0].worker.read(ReadEpochs("words", None, 0, 1.0, "snapshot"))
        with pytest.raises(UsageError, match="in the form 'upserts', and there are 'changes'"):
            workers_of(service)[0].worker.read(ReadEpochs("t", None, 0, 1.0, "upserts"))


@pytest.mark.parametrize("threads", [True, False])
def test_what_is_wrong_is_named(threads: bool) -> None:
    with serve_report(1, threads=threads) as service:
        with pytest.raises(UsageError, match="no input 'orders'; it has 'sales', 'shops'"):
            service.input("orders")
        with pytest.raises(UsageError, match="no output 'other'; it has 'result'"):
            service.output("other")
        with pytest.raises(DataError, match="row 1 for the input 'shops' should be a tuple of 2"):
            service.input("shops").insert([(1, "Rome"), (2,)])
        with pytest.raises(DataError, match="None as 'shop', which is not nullable"):
            service.input("shops").insert([(None, "Rome")])
        with pytest.raises(DataError, match="the diff of row 0 for the input 'shops'"):
            service.input("shops").update([((1, "Rome"), 0.5)])
        with pytest.raises(SchemaError, match="columns for the input 'shops' are"):
            service.input("shops").insert(pa.table({"shop": [1]}))
        leader = workers_of(service)[0].worker
        with pytest.raises(UsageError, match="'shops' is a collection, and all collections"):
            leader.ask(AdvanceInput("shops", 7))
        assert service.advance() == 0
        assert service.output().changes(0) == []
        with pytest.raises(EpochError, match="epoch 1 of output 'result' is not complete"):
            service.output().changes(1, timeout_s=0.01)
        service.input("shops").insert([(1, "Rome")])
        assert leader.ask(CommitEpoch("last", close=True)) == 1
        with pytest.raises(StoppedError, match=r"collections of the service are closed.*'shops'"):
            service.stop()
        assert service.output().changes(1) == []
    with pytest.raises(StoppedError, match="input 'shops' takes nothing more"):
        service.input("shops").insert([(1, "Rome")])
    with pytest.raises(StoppedError):
        service.advance()
    assert service.input("shops").time is None
    assert service.output().probe.done
    service.output().discard(1)
    status = service.status()
    assert set(status.inputs.values()) == {None}
    assert (status.outputs, status.discarded) == ({"result": None}, {"result": 1})


def test_a_commit_that_is_repeated_is_the_epoch_that_it_was() -> None:
    with serve_report(1) as service:
        leader = workers_of(service)[0].worker
        found = [leader.ask(CommitEpoch(name)) for name in ("a", "b", "a", "c", "b")]
        assert found == [0, 1, 0, 2, 1]


def test_what_is_fetched_at_the_end_has_the_last_epoch_of_each_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish, read = ServiceWorker._publish, ServiceWorker.read
    is_read = threading.Event()

    def publish_late(worker: ServiceWorker) -> None:
        if worker.index == 1 and all(probe.done for probe in worker._probes.values()):
            assert is_read.wait(60)  # until then it knows of no complete epoch
        publish(worker)

    def note_read(worker: ServiceWorker, request: ReadEpochs) -> Any:
        if worker.index == 1:
            is_read.set()
        return read(worker, request)

    monkeypatch.setattr(ServiceWorker, "_publish", publish_late)
    monkeypatch.setattr(ServiceWorker, "read", note_read)

    def totals(scope: Any, sales: Any) -> Any:
        return sales.group_by("shop").agg(cents=ps.sum("cents"))

    with ps.serve(totals, 2, collections={"sales": SALES}, threads=True) as service:
        service.input("sales").insert([(shop, "tea", 1) for shop in range(20)])
    assert len(service.output("result").snapshot(0)) == 20


def test_what_comes_while_a_service_stops_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_report(1) as service:
        wait, n_waits = service.wait, 0

        def insert_first(*args: Any) -> bool:
            nonlocal n_waits
            n_waits += 1
            with pytest.raises(StoppedError, match="collections of the service are closed"):
                service.advance()
            with pytest.raises(StoppedError, match="input 'shops' takes nothing more"):
                service.input("shops").insert([(1, "Rome")])
            return wait(*args)

        monkeypatch.setattr(service, "wait", insert_first)
    assert n_waits == 1


def test_a_service_of_streams_has_no_epochs_of_collections() -> None:
    word = {"w": pa.string()}
    with (
        ps.serve(lambda s, w: w, 1, threads=True, inputs={"w": word}, outputs={"w": word}) as s,
        pytest.raises(UsageError, match="the service has no collections"),
    ):
        s.advance()


@pytest.mark.parametrize(
    ("build", "options", "text"),
    [
        (lambda scope, t: 7, {}, "should return a Collection, or a dict of them, and returned 7"),
        (lambda scope, t: {}, {}, "returned no collection"),
        (lambda scope, t: {"a": t, "b": 7}, {}, "should return a Collection"),
        (lambda scope, u: u.nothing, {}, "has no attribute 'nothing'"),
        (lambda scope, t: t, {"inputs": {"t": {"a": pa.int64()}}}, "is in inputs= and in"),
        (lambda scope, t: t, {"collections": ["t"]}, "collections= is a dict of names to schemas"),
        (lambda scope, t: t, {"collections": None}, "serve is given no inputs"),
        (lambda scope, t: t, {"collections": {"t": None}}, r"needs the columns of .* 't' is given"),
    ],
)
def test_what_cannot_be_served_is_refused_before_it_starts(
    build: Any, options: Any, text: str
) -> None:
    with pytest.raises((BuildError, UsageError, AttributeError), match=text):
        ps.serve(build, 1, threads=True, **{"collections": {"t": "a long"}, **options})


def check_service(program: Program, workers: int) -> None:
    """The outputs of a service are those of a view."""

    def build(scope: Any, **given: Any) -> Any:
        return program.build(list(given.values()))

    inputs = {f"in{number}": SCHEMA for number in range(program.n_inputs)}
    with (
        ps.View(build, **inputs) as view,
        ps.serve(build, workers, threads=True, collections=inputs) as service,
    ):
        for epoch, changes in enumerate(program.epochs):
            for name, pairs in zip(inputs, changes, strict=True):
                view.update(name, pairs)
                service.input(name).update(pairs)
            assert service.advance() == epoch
            assert service.output().changes(epoch)[:] == view.advance()[:]


@settings(max_examples=examples(15))
@given(programs(), st.sampled_from([1, 2, 3]))
def test_a_service_gives_what_a_view_gives(program: Program, workers: int) -> None:
    check_service(program, workers)


@settings(max_examples=examples(6))
@given(loop_programs(), st.sampled_from([1, 2]))
def test_a_service_with_loops_gives_what_a_view_gives(program: Program, workers: int) -> None:
    check_service(program, workers)


def test_epochs_of_two_programs_are_numbered_as_they_come() -> None:
    with serve_report(1) as service:
        other = ps.Service(service.spec, service._supervisor)
        service.input("shops").insert([(1, "Rome")])
        other.input("sales").insert([(1, "tea", 2_000)])
        assert [service.advance(), other.advance(), service.advance()] == [0, 1, 2]
        assert other.output().changes(1) == [(("Rome", 1, 2_000), 1)]
        other._is_over = True


@pytest.mark.parametrize("workers", [1, 3])
def test_upserts_of_a_service_are_those_of_a_view(workers: int, tmp_path: Any) -> None:
    def states(scope: Any, orders: Any) -> Any:
        return {"all": orders, "n": orders.group_by("state").count()}

    orders = ps.UpsertInput("id long, shop string, state string?", key=["shop", "id"])
    steps: list[tuple[list[Any], list[Any]]] = [
        ([(1, "a", "open"), (1, "b", None), (1, "a", "paid")], []),
        ([(2, "a", "open"), (1, "b", "sent")], [("a", 1), ("z", 9)]),
        ([], [("b", 1)]),
        ([(1, "b", "open")] * 3, []),
    ]
    options: Any = {"threads": True, "collections": {"orders": orders}, "checkpoint": tmp_path}
    with ps.View(states, orders=orders) as view:
        for half in (steps[:2], steps[2:]):
            with ps.serve(states, workers, **options) as service:
                feed = service.input("orders")
                for rows, keys in half:
                    # One by one, so that they go to several workers.
                    for row in rows:
                        feed.upsert([row])
                        view.upsert("orders", [row])
                    feed.remove(keys)
                    view.remove("orders", keys)
                    epoch, expected = service.advance(), view.advance()
                    for name in ("all", "n"):
                        assert service.output(name).changes(epoch)[:] == expected[name][:]
                with pytest.raises(DataError, match="None as 'shop', which is not nullable"):
                    feed.upsert([(1, None, "open")])
                assert "key=['shop', 'id']" in repr(feed)


def test_a_value_that_the_dataflow_could_not_take_is_refused_when_it_is_staged() -> None:
    collections = {"t": "a long", "u": ps.UpsertInput("a long, b long", key="a")}
    with ps.serve(lambda s, t, u: {"t": t, "u": u}, 1, threads=True, collections=collections) as s:
        worker = workers_of(s)[0]
        fields = [pa.field("a", pa.int64(), False), pa.field("diff", pa.int64(), False)]
        nulls = pa.RecordBatch.from_arrays(
            [pa.array([None], pa.int64()), pa.array([1])], schema=pa.schema(fields)
        )
        with pytest.raises(DataError, match="column 'a' for the input 't' has 1 nulls, and is not"):
            worker.stage("t", 0, [nulls])
        columns = {"a": [1, 2], "b": [None, None], "_deleted": [True, False], "_place": [0, 1]}
        batch = pa.RecordBatch.from_pydict(
            columns,
            schema=pa.schema(
                [*[(n, pa.int64()) for n in "ab"], ("_deleted", pa.bool_()), ("_place", pa.int64())]
            ),
        )
        with pytest.raises(DataError, match="column 'b' for the input 'u' has 1 nulls"):
            worker.stage("u", 0, [batch])
        worker.stage("u", 0, [batch.slice(0, 1)])
    with pytest.raises(SchemaError, match="upserts cannot have a column '_place'"):
        ps.serve(lambda s, u: u, 1, collections={"u": ps.UpsertInput("_place long", key="_place")})


def test_an_input_that_is_append_only_refuses_deletions() -> None:
    seen: list[bool] = []

    def build(scope: Any, t: Any) -> Any:
        seen.append(t.append_only)
        return t.distinct()

    collections = {"t": ps.AppendInput("n long")}
    with ps.serve(build, 2, collections=collections, threads=True) as service:
        feed = service.input("t")
        feed.insert([(1,), (1,)])
        with pytest.raises(
            DataError, match=r"input 't' is append-only, .* diff -1 of the row \(1,\)"
        ):
            feed.delete([(1,)])
        with pytest.raises(DataError, match="diff -2"):
            feed.update([((1,), -2)])
        # Other clients stage columns, and are checked by the worker before anything is committed.
        columns = pa.record_batch([pa.array([1]), pa.array([-1])], names=["n", "diff"])
        with pytest.raises(DataError, match="input 't' is append-only"):
            service.stage_at(0, "t", 0, [columns])
        assert service.advance() == 0
        assert service.output().changes(0) == [((1,), 1)]
    assert set(seen) == {True}


def test_what_an_input_does_not_take_says_what_it_does() -> None:
    collections = {"t": "n long", "u": ps.UpsertInput("n long, x long", key="n")}
    with ps.serve(lambda scope, t, u: t, 1, collections=collections, threads=True) as service:
        for change in (service.input("u").insert, service.input("u").delete):
            with pytest.raises(InputError, match=r"'u' is of upserts: .*upsert\(rows\)"):
                change([(1, 2)])
        for change in (service.input("t").upsert, service.input("t").remove):
            with pytest.raises(InputError, match=r"'t' has no key, .* insert and delete, or"):
                change([(1,)])


def test_an_epoch_that_is_not_committed_is_said_to_be_waited_for(monkeypatch, caplog) -> None:
    monkeypatch.setattr("pointstamp.service.service_probe.SOON_S", 0.01)
    with serve_report() as service:
        service.advance()
        service.output().snapshot(0)
        with pytest.raises(EpochError, match="epoch 9 of output 'result' is not complete"):
            service.output().snapshot(9, timeout_s=0.05)
        assert "epoch 9 is waited for, and not complete after 0.01 s" in caplog.text
        assert "epochs up to 0 are committed" in caplog.text
