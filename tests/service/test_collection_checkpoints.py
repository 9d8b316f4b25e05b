"""Services of collections with a checkpoint: on other numbers of workers, and with other inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import CheckpointError, PointstampError, ServiceError
from pointstamp.service import coordinator
from pointstamp.service.checkpoint_config import COLLECTIONS
from pointstamp.service.protocol import Abort, AwaitStaged, CommitEpoch, GetBatch
from tests.collections.lives import renewed_texts
from tests.service.collection_lives import SCHEMAS, build, changes_of
from tests.service.direct import workers_of

N_EPOCHS = 30
NAMES = ("labels", "named", "longest")


def serve(folder: Path, workers: int, every: int | None = 2, **options: Any) -> ps.Service:
    return ps.serve(
        options.pop("build", build),
        workers,
        threads=True,
        checkpoint=folder,
        snapshot_every=every,
        **{"collections": SCHEMAS, **options},
    )


@contextmanager
def aborted(service: ps.Service) -> Iterator[ps.Service]:
    """A service that ends as it is."""
    try:
        yield service
    finally:
        service.abort()


@cache
def expected() -> list[dict[str, tuple[list[Any], list[Any]]]]:
    """By epoch and output, the changes and what is there then, of a view; before texts change."""
    found = []
    with ps.View(build, **SCHEMAS) as view:
        for epoch in range(N_EPOCHS):
            for name, changes in changes_of(epoch).items():
                view.update(name, changes)
            came = view.advance()
            found.append({name: (came[name][:], view.snapshot(name)[:]) for name in NAMES})
    return found


def feed(service: ps.Service, n_epochs: int) -> int:
    """Send so many epochs, and compare what comes of each with the view; the last of them."""
    for _ in range(n_epochs):
        epoch = service.input("people").time
        for name, changes in changes_of(epoch).items():
            service.input(name).update(changes)
        assert service.advance() == epoch
        for name, (changes, _) in expected()[epoch].items():
            assert service.output(name).changes(epoch)[:] == changes, (name, epoch)
    return int(epoch)


def check_snapshots(service: ps.Service, epoch: int) -> None:
    """What is there is what the view has then."""
    for name, (_, snapshot) in expected()[epoch].items():
        assert service.output(name).snapshot(epoch)[:] == snapshot, name


@pytest.mark.parametrize("every", [None, 1, 2])
def test_a_service_goes_on_with_one_then_two_then_three_workers(
    tmp_path: Path, every: int | None
) -> None:
    expected()
    last = -1
    for workers in (1, 2, 3, 1):
        with renewed_texts(), aborted(serve(tmp_path, workers, every)) as service:
            if last >= 0:
                # What was not discarded is there again, and what was is added up.
                check_snapshots(service, last)
            before, last = last, feed(service, 5)
            if every is not None:
                assert service.await_snapshot(before + every)
                service.output("labels").discard(last)
                service.output("named").discard(last - 2)
                last = feed(service, 1)
    with serve(tmp_path, 2, every) as service:
        last = feed(service, 2)
    # What closes as the service ends goes on with the next.
    with serve(tmp_path, 1, every) as service:
        assert service.input("edges").time == last + 1
        feed(service, 1)


def test_nothing_of_what_a_snapshot_has_is_added_up_twice(tmp_path: Path) -> None:
    """What is discarded behind a snapshot comes again, after one that has not added it up."""
    with aborted(serve(tmp_path, 2, 3)) as service:
        for _ in range(4):
            last = feed(service, 2)
            for name in NAMES:
                service.output(name).discard(last)
        assert service.await_snapshot(2)
    with serve(tmp_path, 3, 3) as service:
        check_snapshots(service, last)
        feed(service, 2)


@pytest.mark.parametrize("every", [None, 1])
def test_a_commit_that_is_repeated_in_another_life_is_the_epoch_that_it_was(
    tmp_path: Path, every: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the log of it is pruned; of many the oldest are forgotten."""
    with aborted(serve(tmp_path, 1, every)) as service:
        leader = workers_of(service)[0].worker
        names = ("z", "b", "a")
        assert [leader.ask(CommitEpoch(name)) for name in names] == [0, 1, 2]
        last = 2
        while every is not None and Checkpoint(tmp_path)._log.pruned() < 2:
            last = service.advance()
            service.await_snapshot(last - 1, 0.1)
    monkeypatch.setattr("pointstamp.service.coordinator.MOST_NAMES", last + 1)
    with aborted(serve(tmp_path, 2, every)) as service:
        leader = workers_of(service)[0].worker
        found = [leader.ask(CommitEpoch(name)) for name in ("b", "z", "c", "a", "b", "z")]
        assert found == [1, 0, last + 1, 2, 1, last + 2]


@pytest.mark.parametrize("every", [None, 2])
def test_a_batch_of_a_feed_counts_once_however_often_others_commit_in_between(
    tmp_path: Path, every: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind more commits than are known by name, and where the log of it is pruned."""
    monkeypatch.setattr("pointstamp.service.coordinator.MOST_NAMES", 3)
    one = {"build": lambda scope, t: t, "collections": {"t": "a long"}}
    batch = pa.RecordBatch.from_pydict({"a": [7], "diff": [1]})

    def commit(service: ps.Service, feed: str, number: int) -> int | None:
        worker = workers_of(service)[0]
        return worker.ask(CommitEpoch(feed, (worker.stage("t", 0, [batch]),), number))

    with aborted(serve(tmp_path, 1, every, **one)) as service:
        assert [commit(service, "x", n) for n in (0, 1, 0)] == [0, 1, 1]
        assert [commit(service, "y", n) for n in (4, 9)] == [2, 3]
        for _ in range(8):
            service.advance()
        assert [commit(service, "y", n) for n in (9, 4, 0)] == [3, 3, 3]
        service.advance()
        assert service.output().snapshot(12) == [(7,)] * 4
        assert len(workers_of(service)[0].worker.staging) == 0
        last = 12
        while every is not None and Checkpoint(tmp_path)._log.pruned() < 3:
            last = service.advance()
            service.output().probe.wait(last)
    with aborted(serve(tmp_path, 2, every, **one)) as service:
        found = [workers_of(service)[0].worker.ask(GetBatch(name)) for name in ("x", "y", "z")]
        assert found == [1, 9, None]
        assert [commit(service, *last) for last in (("x", 1), ("y", 9))] == [1, 3]
        assert commit(service, "x", 2) == last + 1
        assert service.output().snapshot(last + 1) == [(7,)] * 5


def test_what_is_staged_is_committed_at_a_later_epoch_and_not_once_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"build": lambda scope, t: t, "collections": {"t": "a long"}}
    with serve(tmp_path, 1, None, **one) as service:
        worker, leader = workers_of(service)[0], workers_of(service)[0].worker
        batch = pa.RecordBatch.from_pydict({"a": [7], "diff": [2]})
        early, gone = worker.stage("t", 0, [batch]), worker.stage("t", 0, [batch])
        worker.abort([gone])
        assert [service.advance() for _ in range(2)] == [0, 1]
        assert leader.ask(CommitEpoch("late", (early,))) == 2
        assert service.output().changes(2) == [((7,), 2)]
        with pytest.raises(ServiceError, match="was aborted: stage it again"):
            leader.ask(CommitEpoch("never", (gone,)))
        monkeypatch.setattr(coordinator, "MOST_ABORTED", 2)
        worker.abort([worker.stage("t", epoch, [batch]) for epoch in range(5)])
        assert len(leader.coordinator._aborted) == 2
    with serve(tmp_path, 2, None, **one) as service:
        assert service.output().snapshot(2) == [(7,), (7,)]


def test_a_collection_that_is_a_new_output_behind_a_snapshot_is_allowed_by_name(
    tmp_path: Path,
) -> None:
    program = {"collections": {"t": "a long"}}
    with serve(tmp_path, 1, 1, build=lambda scope, t: {"one": t}, **program) as service:
        service.input("t").insert([(1,)])
        assert service.await_snapshot(service.advance())

    def both(scope: Any, t: Any) -> Any:
        return {"one": t, "two": t}

    with pytest.raises(
        PointstampError,
        match=r"no records of 'two', which would .* are 'one'\. .* allow_new=\['two'",
    ):
        serve(tmp_path, 1, 1, build=both, **program)
    with serve(tmp_path, 1, 1, build=both, allow_new=["two"], **program) as service:
        service.input("t").insert([(2,)])
        epoch = service.advance()
        assert service.output("one").snapshot(epoch) == [(1,), (2,)]
        assert service.output("two").snapshot(epoch) == [(2,)]
        assert service.await_snapshot(epoch)
    serve(tmp_path, 1, 1, build=both, **program).stop()


@pytest.mark.parametrize("is_durable", [True, False])
def test_what_is_committed_counts_once_whatever_the_names_of_commits(
    is_durable: bool, tmp_path: Path
) -> None:
    def refuse(service: Any, handle: Any) -> None:
        for name in ("b", "c"):
            with pytest.raises(ServiceError, match="'one' to collection 't' was committed before"):
                workers_of(service)[0].worker.ask(CommitEpoch(name, (handle,)))

    program = {"threads": True, "collections": {"t": "a long"}}
    place = {"checkpoint": str(tmp_path)} if is_durable else {}
    batch = pa.RecordBatch.from_pydict({"a": [7], "diff": [1]})
    with aborted(ps.serve(lambda scope, t: t, 2, **program, **place)) as service:
        handle = workers_of(service)[1].stage("t", 0, [batch], "one")
        assert [workers_of(service)[0].worker.ask(CommitEpoch("a", (handle,)))] * 2 == [0, 0]
        refuse(service, handle)
        assert service.output().snapshot(service.advance()) == [(7,)]
    if is_durable:
        with aborted(ps.serve(lambda scope, t: t, 2, **program, **place)) as service:
            refuse(service, handle)
            assert service.output().snapshot(service.advance()) == [(7,)]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("kind", ["stream", "collection"])
def test_attempts_of_an_aborted_job_are_not_committed(
    kind: str, is_durable: bool, at: int, tmp_path: Path
) -> None:
    schema = pa.schema({"a": pa.int64()})
    program: Any = {"inputs": {"t": schema}, "outputs": {"t": schema}}
    if kind == "collection":
        program = {"collections": {"t": "a long"}}
    place = {"checkpoint": str(tmp_path)} if is_durable else {}
    batch = pa.RecordBatch.from_pydict({"a": [7]} | ({"diff": [1]} if kind != "stream" else {}))
    with aborted(ps.serve(lambda scope, t: t, 2, threads=True, **program, **place)) as service:
        workers = workers_of(service)
        early, other = (workers[at].stage("t", 0, [batch], f"job {n} task 1") for n in (1, 2))
        workers[0].worker.ask(Abort(job="job 1 "))

        def commit(handle: Any) -> Any:
            if kind == "stream":
                return workers[0].commit("t", 0, [handle], 1)
            return workers[0].worker.ask(CommitEpoch(handle.attempt, (handle,))) == 0

        with pytest.raises(ServiceError, match=r"'job 1 task 1' .*was aborted: stage it again"):
            commit(early)
        assert commit(other)
        if kind == "stream":
            assert service.output("t").collect(upto=0)["a"].to_pylist() == [7]
        else:
            assert service.output().snapshot(0) == [(7,)]


def test_a_commit_that_fails_is_tried_again_by_the_next_call(tmp_path: Path) -> None:
    """It is staged again, and what came since is an epoch of its own."""
    one = {"build": lambda scope, t: t, "collections": {"t": "a long"}}
    with serve(tmp_path, 1, None, **one) as service:
        coordinator = workers_of(service)[0].worker.coordinator
        write = coordinator._write_epoch

        def fail(*args: Any) -> None:
            raise CheckpointError("the disk is full")

        coordinator._write_epoch = fail
        service.input("t").insert([(1,)])
        with pytest.raises(CheckpointError, match="the disk is full"):
            service.advance()
        assert service.ask(AwaitStaged("t", 1, 60.0)) == 0  # what is staged anew is not beside it
        service.input("t").insert([(2,)])
        coordinator._write_epoch = write
        assert service.advance() == 1
        assert service.output().read(1) == [(0, [((1,), 1)]), (1, [((2,), 1)])]


def test_what_does_not_fit_the_checkpoint_is_refused(tmp_path: Path) -> None:
    def one(scope: Any, t: Any) -> Any:
        return t.select("a").distinct()

    def again(build: Any, schema: Any, **options: Any) -> None:
        serve(tmp_path, 1, 2, build=build, collections={"t": schema}, **options).abort()

    with serve(tmp_path, 1, 2, build=one, collections={"t": "a long, b string"}) as service:
        for epoch in range(5):
            service.input("t").insert([(epoch, "x")])
            service.advance()
        assert service.await_snapshot(1)
    texts = {
        "had columns a: int64, b: string, diff: int64": lambda: again(one, "a long, b binary"),
        "has records of output 'result', which this service has": lambda: again(
            lambda scope, t: {"other": one(scope, t)}, "a long, b string"
        ),
        "does not have: 'service/Distinct' kept in 'rows'": lambda: again(
            lambda scope, t: t.select("a"), "a long, b string"
        ),
    }
    for text, begin in texts.items():
        with pytest.raises(PointstampError, match=text):
            begin()
    again(one, "a long, b string")


@pytest.mark.parametrize(
    ("columns", "aggregates", "kept"),
    [
        ("a", {"n": ps.min("b")}, "min of b for each a"),
        ("a", {"n": ps.max("c")}, "max of c for each a"),
        ("a", {"n": ps.max("b"), "m": ps.count()}, "max of b, count for each a"),
        ("c", {"n": ps.max("b")}, "max of b for each c"),
        ("a", {"n": ps.max_by("b", "c")}, "max_by of b, c for each a"),
        ("", {"n": ps.count()}, "count for all records"),
    ],
)
def test_other_aggregates_than_those_of_the_checkpoint_are_refused(
    tmp_path: Path, columns: str, aggregates: dict[str, Any], kept: str
) -> None:
    """Of which state has as many words, or others: it would be taken for what it is not."""

    def most(scope: Any, t: Any) -> Any:
        return t.group_by("a").agg(n=ps.max("b"))

    def other(scope: Any, t: Any) -> Any:
        return t.group_by(columns).agg(**aggregates) if columns else t.agg(**aggregates)

    schemas = {"t": "a long, b long, c long"}
    with serve(tmp_path, 1, 2, build=most, collections=schemas) as service:
        for epoch in range(5):
            service.input("t").insert([(1, epoch, -epoch)])
            service.advance()
        assert service.await_snapshot(1)
    with pytest.raises(
        PointstampError, match=rf"has rows by \d words: {kept}; .*max of b for each"
    ):
        serve(tmp_path, 1, build=other, collections=schemas).abort()
    with serve(tmp_path, 1, build=most, collections=schemas) as service:
        assert service.output().snapshot(service.advance()) == [(1, 4)]


def test_other_first_records_than_those_of_the_checkpoint_are_refused(tmp_path: Path) -> None:
    """Groups that do not change would have as many as before."""

    def first(k: int) -> Any:
        return lambda scope, t: t.group_by("a").top_k(k, by="b")

    schemas = {"t": "a long, b long"}
    with serve(tmp_path, 1, 2, build=first(1), collections=schemas) as service:
        for epoch in range(5):
            service.input("t").insert([(1, epoch)])
            service.advance()
        assert service.await_snapshot(1)
    with pytest.raises(PointstampError, match=r"words: the first 2 of .* the first 1 of"):
        serve(tmp_path, 1, build=first(2), collections=schemas).abort()
    with serve(tmp_path, 1, build=first(1), collections=schemas) as service:
        assert service.output().snapshot(service.advance()) == [(1, 4)]


def test_a_stream_that_becomes_a_collection_is_refused_and_the_reverse(tmp_path: Path) -> None:
    columns = {"a": pa.int64(), "diff": pa.int64()}

    def stream(folder: str) -> ps.Service:
        streams = {"inputs": {"t": columns}, "outputs": {"t": columns}}
        place = {"checkpoint": tmp_path / folder}
        return ps.serve(lambda scope, t: t, 1, threads=True, **streams, **place)

    def collection(folder: str) -> ps.Service:
        return serve(
            tmp_path / folder, 1, None, build=lambda scope, t: t, collections={"t": "a long"}
        )

    with stream("one") as service:
        service.input("t").send([{"a": 1, "diff": 1}])
        service.input("t").advance_to(1)
    with pytest.raises(PointstampError, match=r"'t' was a stream when .* is a collection now"):
        collection("one")
    with collection("other") as service:
        service.input("t").insert([(1,)])
        service.advance()
    with pytest.raises(PointstampError, match=r"'t' was a collection when .* is a stream now"):
        stream("other")


def test_prune_keeps_what_a_later_record_names(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    batch = pa.RecordBatch.from_pydict({"a": [1]})
    one, other, never = (
        checkpoint.stage("t", epoch, attempt, [batch])
        for epoch, attempt in ((0, "one"), (1, "other"), (1, "never"))
    )
    assert checkpoint.commit(COLLECTIONS, 0, [], commit="first")
    assert checkpoint.commit(COLLECTIONS, 1, [one], commit="second")
    assert checkpoint.commit(COLLECTIONS, 2, [other], commit="third")
    checkpoint._log.prune(1)
    with pytest.raises(CheckpointError):
        list(checkpoint.read(one))
    with pytest.raises(CheckpointError):
        list(checkpoint.read(never))
    assert [part.to_pydict() for part in checkpoint.read(other)] == [{"a": [1]}]
    (record,) = checkpoint.records(COLLECTIONS, -1)
    assert (record.epoch, record.commit, record.attempts) == (2, "third", (other,))
