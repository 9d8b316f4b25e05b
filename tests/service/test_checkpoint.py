"""What a service with a checkpoint has after it was killed, at any moment, and begins again."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, claims
from pointstamp.checkpoint.input_log import CommitRecord
from pointstamp.checkpoint.objects import LocalObjects
from pointstamp.errors import (
    CheckpointError,
    CheckpointInUseError,
    CheckpointStructureError,
    CorruptCheckpointError,
    EpochError,
    ServiceError,
    StoppedError,
    UndeclaredStateError,
    UsageError,
    WorkerError,
)
from pointstamp.service import protocol
from pointstamp.service.restart_policy import DEFAULT_RESTART
from pointstamp.service.snapshotting import WRITTEN
from tests.service.direct import workers_of

WORD = {"word": pa.string()}
COUNT = {"word": pa.string(), "n": pa.int64()}


def totals(scope, words):
    """For each epoch and word that came in it: how often that has come so far."""

    def build(capability, info):
        held, seen = {}, info.state("seen")

        def logic(input, output):
            for when, batch in input:
                held.setdefault(when.retain(), []).extend(batch.column("word").to_pylist())
            done = [cap for cap in held if not input.frontier.less_equal(cap.time)]
            for cap in sorted(done, key=lambda cap: cap.time):
                came = held.pop(cap)
                for word in came:
                    seen[word] = seen.get(word, 0) + 1
                rows = [{"word": word, "n": seen[word]} for word in sorted(set(came))]
                with output.session(cap) as session:
                    session.give_batch(pa.RecordBatch.from_pylist(rows, schema=pa.schema(COUNT)))
                cap.drop()

        return logic

    return words.unary_frontier(ps.Exchange("word"), "Totals", build)


def serve(
    folder,
    workers=2,
    threads=True,
    build=totals,
    every=None,
    allow_new=(),
    restart=DEFAULT_RESTART,
    **inputs,
):
    return ps.serve(
        build,
        workers,
        inputs=inputs or {"words": WORD},
        outputs={"counts": COUNT},
        threads=threads,
        checkpoint=folder,
        snapshot_every=every,
        allow_new=allow_new,
        restart=restart,
    )


def words_of(epoch):
    """What is sent at an epoch: the same whoever asks, and whenever."""
    rolled = random.Random(epoch)
    return [rolled.choice("abcdef") for _ in range(rolled.randrange(6))]


def feed(service, n_epochs):
    """Send what is missing up to `n_epochs`: from where the service says that it is."""
    words = service.input("words")
    for epoch in range(words.time, n_epochs):
        words.send([{"word": word} for word in words_of(epoch)])
        words.advance_to(epoch + 1)


def expected(n_epochs):
    seen, found = Counter(), []
    for epoch in range(n_epochs):
        came = words_of(epoch)
        seen.update(came)
        found += [(epoch, word, seen[word]) for word in sorted(set(came))]
    return found


def counted(service, upto):
    return sorted(
        (epoch, row["word"], row["n"])
        for epoch, batch in service.output("counts").read(upto)
        for row in batch.to_pylist()
    )


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_service_that_begins_again_goes_on_where_it_was(tmp_path, workers):
    first = serve(tmp_path, 2)
    feed(first, 5)
    first.input("words").send([{"word": "never committed"}])
    first.abort()
    with serve(tmp_path, workers) as again:
        assert again.input("words").time == 5
        feed(again, 8)
        assert counted(again, 7) == expected(8)
    with serve(Checkpoint(tmp_path), 1) as third:
        assert counted(third, 7) == expected(8)


def test_a_commit_that_is_repeated_after_a_restart_changes_nothing(tmp_path):
    with serve(tmp_path) as service:
        feed(service, 2)
    with serve(tmp_path) as service:
        zero, one = workers_of(service)
        batch = pa.RecordBatch.from_pydict({"word": ["a"]})
        assert not zero.commit("words", 1, [one.stage("words", 1, [batch])], 2)
        assert zero.commit("words", 2, [], 3)
        assert counted(service, 2) == expected(2)


@pytest.mark.parametrize("every", [None, 1])
def test_the_last_batch_of_a_query_is_known_from_that_of_another_in_the_next_life(tmp_path, every):
    batch = pa.RecordBatch.from_pydict({"word": ["a"]})

    def commit(service, epoch, query):
        worker = workers_of(service)[0]
        staged = worker.stage("words", epoch, [batch])
        return worker.worker.ask(protocol.Commit("words", epoch, (staged,), query=query))

    with serve(tmp_path, every=every) as service:
        assert commit(service, 0, "one")
        assert commit(service, 1, "one")
        words = service.input("words")
        words.advance_to(8)
        # Until snapshots have both; a folder that goes meanwhile is no error to this `glob`.
        while every is not None and glob.glob(f"{tmp_path}/log/words/*1/attempt-*"):  # noqa: PTH207
            words.advance_to(words.time + 1)
        time = words.time
    with serve(tmp_path, every=every) as service:
        assert not commit(service, 1, "one")
        for epoch, query in [(1, "other"), (0, "one"), (time - 1, "one"), (time - 1, "other")]:
            with pytest.raises(EpochError, match=f"{query} for epoch {epoch}, 1 records, is not"):
                commit(service, epoch, query)
        assert commit(service, time, "other")
        assert counted(service, time)[-1] == (time, "a", 3)


def test_whose_batch_the_last_was_is_not_known_of_former_versions(tmp_path, monkeypatch):
    made = CommitRecord.to_bytes
    monkeypatch.setattr(CommitRecord, "to_bytes", lambda self: made(replace(self, query="")))
    batch = pa.RecordBatch.from_pydict({"word": ["a"]})
    for _ in range(2):
        with serve(tmp_path) as service:
            worker = workers_of(service)[0]
            commit = protocol.Commit("words", 0, (worker.stage("words", 0, [batch]),), query="q")
            worker.worker.ask(commit)
            assert counted(service, 0) == [(0, "a", 1)]


def test_a_decision_is_written_before_it_counts_and_an_abort_removes_what_lost(tmp_path):
    batch = pa.RecordBatch.from_pydict({"word": ["a", "b"]})
    with serve(tmp_path) as service:
        zero, one = workers_of(service)
        # One attempt that brought something to two workers.
        both = [link.stage("words", 0, [batch], "one attempt") for link in (zero, one)]
        rejected = one.stage("words", 0, [batch])
        zero.abort([rejected])
        assert zero.commit("words", 0, [*both, both[0]], 1)
        [(epoch, attempts)] = Checkpoint(tmp_path).committed("words", -1)
        assert (epoch, [attempt.rows for attempt in attempts]) == (0, [2, 2])
        assert len(list(tmp_path.glob("log/words/*/attempt-*"))) == 2
        assert counted(service, 0) == [(0, "a", 2), (0, "b", 2)]
    with serve(tmp_path, 3) as service:
        assert counted(service, 0) == [(0, "a", 2), (0, "b", 2)]


@pytest.mark.parametrize("threads", [True, False])
def test_a_second_service_on_a_folder_is_refused_and_the_first_goes_on(
    tmp_path, monkeypatch, threads
):
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    policy = ps.RestartPolicy(delay_s=0.0)
    with serve(tmp_path, 2, threads=threads, restart=policy) as one:
        feed(one, 1)
        for _ in range(2):
            with pytest.raises(CheckpointInUseError, match=r"this program commits to this .* alr"):
                serve(tmp_path)
        feed(one, 2)
        assert counted(one, 1) == expected(2)
    # Stopped, aborted, and ended by itself: each lets the next one in.
    with serve(tmp_path) as two:
        feed(two, 3)
        two.abort()
    three = serve(tmp_path, restart=None)
    workers_of(three)[1].fail(RuntimeError("lost"))
    with pytest.raises(WorkerError, match="lost"):
        three.probe.wait(9)
    with serve(tmp_path) as four:
        assert counted(four, 2) == expected(3)


def test_a_folder_that_is_gone_takes_no_commits_and_is_not_begun_with(tmp_path):
    folder, away = tmp_path / "service", tmp_path / "away"
    with serve(folder, restart=ps.RestartPolicy(attempts=2, delay_s=0.0)) as service:
        feed(service, 2)
        folder.rename(away)
        with pytest.raises(CheckpointError, match=r"cannot be found.*if the folder was removed or"):
            feed(service, 3)
        shutil.rmtree(folder, ignore_errors=True)  # it may have what was staged just now
        away.rename(folder)
        service.input("words").advance_to(3)
        assert counted(service, 2) == expected(3)
        folder.rename(away)
        workers_of(service)[1].worker.fail(RuntimeError("lost"))
        with pytest.raises(WorkerError, match="lost") as caught:
            service.probe.wait(9)
        assert "the last time they ended of: " in caught.value.__notes__[0]
        assert "if the folder was removed or moved away" in caught.value.__notes__[0]
        service.abort()


def test_two_services_on_one_folder_without_locks_find_out(tmp_path, monkeypatch):
    def flock(file, kind):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(claims.fcntl, "flock", flock)
    with serve(tmp_path) as one, serve(tmp_path) as other:
        feed(one, 1)
        with pytest.raises(ServiceError, match="another one uses the folder"):
            feed(other, 1)
        assert counted(one, 0) == expected(1)
        other.abort()


def test_the_checkpoint_of_another_dataflow_is_refused(tmp_path):
    with serve(tmp_path) as service:
        feed(service, 1)
    with pytest.raises(WorkerError, match="has records of input 'words', which this") as caught:
        serve(tmp_path, edges=WORD)
    assert isinstance(caught.value.__cause__, CheckpointStructureError)


def test_what_is_damaged_is_said(tmp_path):
    with serve(tmp_path) as service:
        service.input("words").send([{"word": "a"}] * 3)
    [file] = tmp_path.glob("log/words/*/attempt-*")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(WorkerError, match="are not those that were written") as caught:
        counted(serve(tmp_path), 0)
    assert isinstance(caught.value.__cause__, CorruptCheckpointError)


def test_workers_that_are_killed_before_a_commit_have_lost_nothing_that_was_committed(tmp_path):
    def die(scope, words):
        def check(batch):
            if "die" in batch.column("word").to_pylist():
                os.kill(os.getpid(), signal.SIGKILL)
            return batch

        return totals(scope, words.exchange("word").map_batches(check))

    outputs = {"counts": COUNT}
    service = ps.serve(
        die,
        2,
        inputs={"words": WORD},
        outputs=outputs,
        checkpoint=tmp_path,
        restart=ps.RestartPolicy(delay_s=0.0),
    )
    feed(service, 3)
    service.input("words").send([{"word": "die"}])
    with contextlib.suppress(WorkerError):  # the worker may die before this has returned
        service.input("words").advance_to(4)
    with pytest.raises(WorkerError, match="SIGKILL"):
        service.probe.wait(3, timeout_s=None)  # it is started again three times first
    service.abort()
    # It was committed, so it is let in again; this dataflow does not die of it.
    with serve(tmp_path) as service:
        assert service.input("words").time == 4
        assert counted(service, 3) == sorted([*expected(3), (3, "die", 1)])


def test_an_aborted_service_is_stopped_for_its_links_too(tmp_path):
    service = serve(tmp_path)
    service.abort()
    with pytest.raises(StoppedError):
        workers_of(service)[0].commit("words", 0, [], 1)
    assert list(Checkpoint(tmp_path).committed("words", -1)) == []


def sealed(service, epoch):
    """Wait until there is a snapshot of this epoch or a later one; of which."""
    assert service.await_snapshot(epoch)
    return service.snapshot()["committed"]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_service_begins_again_with_its_last_snapshot(tmp_path, workers):
    first = serve(tmp_path, 2, every=3)
    assert first.snapshot() == {"committed": -1, "asked": 2}
    feed(first, 5)
    sealed(first, 2)  # and the next is asked for, of epoch 5, 6 or 7
    feed(first, 10)
    last = sealed(first, 5)
    first.abort()
    # Of the log, what came up to the snapshot before is gone.
    assert next(Checkpoint(tmp_path).committed("words", -1))[0] > 2
    with serve(tmp_path, workers, every=3) as again:
        assert again.snapshot()["committed"] >= last
        assert again.input("words").time == 10
        feed(again, 12)
        # What nobody has discarded is there, of epochs before the snapshot as well.
        assert counted(again, 11) == expected(12)
    with serve(tmp_path, 4, every=3) as third:
        assert counted(third, 11) == expected(12)


@pytest.mark.parametrize("threads", [True, False])
def test_a_snapshot_is_made_soon_where_somebody_asks_for_it(tmp_path, threads):
    with serve(tmp_path, 2, threads, every=100) as service:
        feed(service, 3)
        assert service.snapshot() == {"committed": -1, "asked": 99}
        assert service.snapshot(soon=True) == {"committed": -1, "asked": 3}
        assert service.snapshot(soon=True) == {"committed": -1, "asked": 3}
        assert not service.await_snapshot(0, timeout_s=0)  # before the inputs have gone on
        feed(service, 6)
        assert sealed(service, 3) == 3
        until = time.monotonic() + 120
        while service.snapshot()["asked"] is None:
            assert time.monotonic() < until
        assert service.snapshot()["asked"] > 99
    with serve(tmp_path, 3, every=100) as service:
        assert service.snapshot()["committed"] == 3
        assert service.input("words").time == 6
        feed(service, 8)
        assert counted(service, 7) == expected(8)


def test_what_was_forgotten_before_a_snapshot_stays_forgotten(tmp_path):
    with serve(tmp_path, 2, every=4) as service:
        feed(service, 2)
        service.probe.wait(1)
        service.output("counts").discard(1)
        feed(service, 4)
        sealed(service, 3)
        feed(service, 6)
    with serve(tmp_path, 3, every=4) as service:
        assert counted(service, 5) == [pair for pair in expected(6) if pair[0] > 1]
        (leader, *_) = workers_of(service)
        leader.finish()
        leader.coordinator.snapshots.plan_next()  # as when the last is there just then
        assert service.snapshot()["asked"] is None


def test_snapshots_go_on_when_an_input_is_closed_or_behind(tmp_path):
    def two(scope, words, others):
        return totals(scope, words.concat(others))

    service = serve(tmp_path, build=two, every=2, words=WORD, others=WORD)
    feed(service, 3)
    assert service.snapshot()["committed"] == -1  # the other is at 0
    service.input("others").send([{"word": "z"}])
    service.input("others").advance_to(1)
    service.input("others").close()
    assert sealed(service, 1) == 1
    feed(service, 7)
    sealed(service, 4)
    service.abort()
    with serve(tmp_path, build=two, every=2, words=WORD, others=WORD) as again:
        assert again.input("words").time == 7
        again.input("others").close()
        assert counted(again, 6) == sorted([*expected(7), (0, "z", 1)])


@pytest.mark.parametrize("ahead", [0, 4])
def test_no_input_is_past_an_epoch_that_it_never_came_to(tmp_path, ahead):
    """What closes because a service stops, the next one goes on with, where it was."""

    def two(scope, words, others):
        return totals(scope, words.concat(others))

    def begin():
        return serve(tmp_path, build=two, every=3, words=WORD, others=WORD)

    with begin() as service:
        feed(service, 3)
        service.input("others").advance_to(3)
        sealed(service, 2)
        until = time.monotonic() + 120
        while service.snapshot()["asked"] is None:
            assert time.monotonic() < until
        for epoch in range(3, 3 + ahead):
            service.input("others").advance_to(epoch + 1)
        # The workers are at one that nobody may come to: of epoch 3, or 5 where others are ahead.
        assert service.snapshot(soon=True)["asked"] == (5 if ahead else 3)
        # As `stop` does, but that it would not wait for the parts.
        (leader, *_) = workers_of(service)
        leader.finish()
        for name in ("words", "others"):
            service.input(name).close()
        while len(leader.coordinator.snapshots.reports[WRITTEN]) < service.workers:
            assert time.monotonic() < until
    with begin() as service:
        assert service.snapshot()["committed"] == 2
        assert service.input("words").time == 3
        assert service.input("others").time == 3 + ahead
        feed(service, 9)
        service.input("others").close()
        assert counted(service, 8) == expected(9)


def test_state_that_is_not_declared_is_refused(tmp_path):
    def build(scope, words):
        def forgetful(capability, info):
            def logic(input, output):
                for _ in input:
                    pass

            return logic

        return words.unary_frontier(ps.Pipeline(), "Forgetful", forgetful)

    with pytest.raises(WorkerError, match="'service/Forgetful' does not say what it") as caught:
        serve(tmp_path, build=build, every=3)
    assert isinstance(caught.value.__cause__, UndeclaredStateError)
    service = serve(tmp_path, build=build)  # without snapshots, all is worked off again
    with pytest.raises(ServiceError, match="makes no snapshots"):
        service.snapshot()
    service.stop()


def test_a_dataflow_that_has_changed_is_refused_unless_it_is_allowed_by_name(tmp_path):
    with serve(tmp_path, every=1) as service:
        feed(service, 2)
        sealed(service, 0)

    def more(scope, words):
        def note(key, value, state):
            return state + 1, [state]

        rows = words.map_batches(lambda batch: [(w, 1) for w in batch["word"].to_pylist()])
        rows.state_machine(note, default=0)
        return totals(scope, words)

    with pytest.raises(WorkerError, match=r"allow_new=\['service/StateMachine'\]") as caught:
        serve(tmp_path, build=more, every=1)
    assert isinstance(caught.value.__cause__, CheckpointStructureError)
    with serve(tmp_path, build=more, every=1, allow_new=["service/StateMachine"]) as service:
        assert counted(service, 1) == expected(2)


def test_options_that_do_not_fit_are_said(tmp_path):
    with pytest.raises(UsageError, match="at least 1, and not 0"):
        serve(tmp_path, every=0)
    with pytest.raises(UsageError, match="needs a checkpoint="):
        serve(None, every=3)
    with serve(tmp_path, every=1) as service:
        feed(service, 2)
        sealed(service, 0)
    with pytest.raises(UsageError, match=r"has a snapshot, of epoch \d, and the log"):
        serve(tmp_path)


@pytest.mark.parametrize("every", [None, 1, 2])
def test_how_far_an_input_was_advanced_outlasts_the_service(tmp_path, every):
    """Readers were told that no more comes before; so nothing may, in later lives either."""

    def two(scope, words, others):
        return totals(scope, words.concat(others))

    def begin(workers):
        return serve(tmp_path, workers, build=two, every=every, words=WORD, others=WORD)

    came = []
    for life, promised in enumerate([5, 5, 7, 12]):
        service = begin(1 + life % 3)
        others, words = service.input("others"), service.input("words")
        assert (others.time, words.time) == (max([0, *came]), 2 * life)
        if others.time < promised:
            others.send([{"word": "z"}])
            others.advance_to(promised)
            came.append(promised)
        feed(service, 2 * life + 2)
        service.probe.wait(2 * life + 1)
        assert others.time == promised
        if every == 2 and life == 0:
            sealed(service, 1)  # and what said so of the others is older, and pruned
        service.abort()
    with begin(2) as service:
        assert service.input("others").time == 12
        feed(service, 12)
        rows = counted(service, 11)
    assert [row for row in rows if row[1] == "z"] == [(0, "z", 1), (5, "z", 2), (7, "z", 3)]
    assert [row for row in rows if row[1] != "z"] == expected(12)


def test_outputs_beside_a_snapshot_that_was_not_committed_do_not_count_for_the_next(tmp_path):
    """The epoch may be reached again, with more in it, and by other workers."""
    service = serve(tmp_path, 1, every=3)
    feed(service, 3)
    sealed(service, 2)
    until = time.monotonic() + 120
    while service.snapshot()["asked"] is None:
        assert time.monotonic() < until
    assert service.snapshot()["asked"] == 5
    feed(service, 5)  # and now the worker is at it
    # As `stop` does, but that it would not wait for the parts.
    (leader,) = workers_of(service)
    leader.finish()
    service.input("words").close()
    while not leader.coordinator.snapshots.reports[WRITTEN]:
        assert time.monotonic() < until
    service.abort()
    assert list(tmp_path.glob("log/output*/*6/attempt-*"))
    service = serve(tmp_path, 2, every=3)
    assert service.snapshot(soon=True)["asked"] == 5
    feed(service, 6)
    assert sealed(service, 5) == 5
    service.abort()
    with serve(tmp_path, 1, every=3) as service:
        feed(service, 9)
        assert counted(service, 8) == expected(9)


def echo(folder, columns, output="o", every=None, **allowed):
    """A service that gives what it is sent."""
    return ps.serve(
        lambda scope, i: i,
        threads=True,
        inputs={"i": columns},
        outputs={output: columns},
        checkpoint=folder,
        snapshot_every=every,
        **allowed,
    )


@pytest.mark.parametrize("every", [None, 1])
def test_a_checkpoint_of_other_columns_is_refused(tmp_path, every):
    with echo(tmp_path, {"n": pa.int64()}, every=every) as service:
        service.input("i").send([{"n": 7}])
        service.input("i").advance_to(1)
        assert every is None or service.await_snapshot(0)
    for columns in ({"n": pa.string()}, {"n": pa.int64(), "m": pa.int64()}):
        with pytest.raises(WorkerError, match="input 'i' had columns n: int64 when") as caught:
            echo(tmp_path, columns, every=every)
        assert isinstance(caught.value.__cause__, CheckpointStructureError)


def test_an_output_of_which_records_are_kept_is_not_left_out_in_silence(tmp_path):
    columns = {"n": pa.int64()}
    with echo(tmp_path, columns, every=1) as service:
        service.input("i").send([{"n": 7}])
        service.input("i").advance_to(1)
        assert service.await_snapshot(0)
    with pytest.raises(WorkerError, match=r"records of output 'o'.*allow_missing=\['o'\]"):
        echo(tmp_path, columns, "p", every=1)
    with pytest.raises(UsageError, match="allow_missing= is a list of names"):
        echo(tmp_path, columns, "p", every=1, allow_missing="o")
    with echo(tmp_path, columns, "p", every=1, allow_missing=["o"]) as service:
        assert service.output("p").collect(upto=0).num_rows == 0
    with echo(tmp_path, columns, every=1) as service:
        # What the snapshot has is complete from the start.
        assert service.status().outputs == {"o": 1}
        assert service.output("o").collect()["n"].to_pylist() == [7]
        assert service.status().end == 1


FULL = {
    "of the state": "snapshots/",
    "of the outputs": "log/output",
    "of the manifest": "manifest.json",
    "of the note that the log is pruned": "pruned.json",
}


@pytest.mark.parametrize("what", FULL)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_disk_that_is_full_gives_up_a_snapshot_and_not_the_service(
    tmp_path, monkeypatch, caplog, what, workers
):
    is_full, put = True, LocalObjects.put

    def fill(self, name, data):
        if is_full and FULL[what] in name:
            raise CheckpointError(f"{name}: cannot be written: No space left on device")
        put(self, name, data)

    monkeypatch.setattr(LocalObjects, "put", fill)
    with serve(tmp_path, workers, every=2) as service:
        for n_epochs in (3, 6, 9):
            feed(service, n_epochs)
            assert counted(service, n_epochs - 1) == expected(n_epochs)
        until = time.monotonic() + 120
        while not (caplog.records and service.snapshot()["asked"] is not None):
            assert time.monotonic() < until
        assert "No space left on device" in caplog.text
        if "note" not in what:
            assert service.snapshot()["committed"] == -1
            assert not list(tmp_path.rglob("manifest.json"))
        is_full = False
        # What is written later does not build on what was given up.
        seen = {service.snapshot()["committed"]}
        while len(seen) < 4:
            n_epochs += 1
            feed(service, n_epochs)
            service.probe.wait(n_epochs - 1)
            seen.add(service.snapshot()["committed"])
            assert time.monotonic() < until
        service.abort()
    for peers in (workers, 3):
        with serve(tmp_path, peers, every=2) as service:
            assert service.snapshot()["committed"] >= max(seen)
            assert counted(service, n_epochs - 1) == expected(n_epochs)


def test_what_a_snapshot_that_is_given_up_has_written_is_removed(tmp_path, monkeypatch, caplog):
    put = LocalObjects.put

    def fill(self, name, data):
        if "/00001-" in name:  # that of worker 1
            raise CheckpointError(f"{name}: cannot be written: No space left on device")
        put(self, name, data)

    monkeypatch.setattr(LocalObjects, "put", fill)
    with serve(tmp_path, 2, every=100) as service:
        for epoch in (1, 3):
            feed(service, epoch)
            service.snapshot(soon=True)
            feed(service, epoch + 1)
            until = time.monotonic() + 120
            while service.snapshot()["asked"] in (epoch, None):
                assert time.monotonic() < until
        assert not list(tmp_path.glob("snapshots/*/*"))
        assert not list(tmp_path.glob("log/output*/*/*"))
    assert len(caplog.records) == 2


def test_a_log_that_ends_before_its_snapshot_says_is_refused(tmp_path):
    with serve(tmp_path, every=2) as service:
        feed(service, 2)
        sealed(service, 1)
        feed(service, 6)
        sealed(service, 3)
        service.abort()
    reached = max(
        json.loads(file.read_text())["body"]["meta"]["reached"]["words"]
        for file in tmp_path.glob("snapshots/*/manifest.json")
    )
    for epoch in range(reached - 1, 6):
        shutil.rmtree(tmp_path / f"log/words/{epoch:020}")
    with pytest.raises(WorkerError, match="commit records at the end were lost") as caught:
        serve(tmp_path, every=2)
    assert isinstance(caught.value.__cause__, CorruptCheckpointError)


@pytest.mark.parametrize("lost", [0, 2, 3])
def test_a_commit_record_that_is_lost_is_said(tmp_path, lost):
    with serve(tmp_path) as service:
        feed(service, 5)
        service.abort()
    (tmp_path / f"log/words/{lost:020}/committed.json").unlink()
    with pytest.raises(WorkerError, match=f"of epoch {lost + 1} of input 'words'") as caught:
        serve(tmp_path)
    assert isinstance(caught.value.__cause__, CorruptCheckpointError)
