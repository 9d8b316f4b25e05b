"""A service on threads: what it is sent, what it gives, how it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import (
    BuildError,
    ContainerError,
    EpochError,
    SchemaError,
    StoppedError,
    UsageError,
    WorkerError,
)
from pointstamp.service.protocol import Status
from pointstamp.service.supervisor import abandoned
from tests.conftest import examples
from tests.service.direct import workers_of
from tests.slowness import slowdown

WORD = pa.schema({"word": pa.string()})
COUNT = pa.schema({"word": pa.string(), "n": pa.int64()})


def totals(scope, words):
    """For each epoch, the words that came in it, and how often each has come so far."""

    def build(capability, info):
        held, seen = {}, Counter()

        def logic(input, output):
            for when, batch in input:
                held.setdefault(when.retain(), []).extend(batch.column("word").to_pylist())
            done = [cap for cap in held if not input.frontier.less_equal(cap.time)]
            for cap in sorted(done, key=lambda cap: cap.time):
                came = held.pop(cap)
                seen.update(came)
                rows = [{"word": word, "n": seen[word]} for word in sorted(set(came))]
                with output.session(cap) as session:
                    session.give_batch(pa.RecordBatch.from_pylist(rows, schema=COUNT))
                cap.drop()

        return logic

    return words.unary_frontier(ps.Exchange("word"), "Totals", build)


def both(scope, left, right):
    return {"left": left.exchange("word"), "all": left.concat(right).exchange("word")}


def rows(*words):
    return [{"word": word} for word in words]


def serve(build=totals, workers=2, outputs=None, **inputs):
    return ps.serve(
        build,
        workers,
        threads=True,
        inputs=inputs or {"words": WORD},
        outputs=outputs or {"counts": COUNT},
    )


def counted(service, **range_):
    """{(epoch, word, n)} of output counts."""
    return sorted(
        (epoch, row["word"], row["n"])
        for epoch, batch in service.output("counts").read(**range_)
        for row in batch.to_pylist()
    )


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_epochs_go_in_and_their_answers_come_out(workers):
    with serve(workers=workers) as service:
        words = service.input("words")
        words.send(rows("a", "b"))
        words.send(rows("a"))
        words.advance_to(1)
        assert sorted(service.output("counts").collect(upto=0).to_pylist(), key=str) == [
            {"word": "a", "n": 2},
            {"word": "b", "n": 1},
        ]
        words.advance_to(5)
        words.send(rows("b"))
        words.advance_to(6)
        assert counted(service, upto=5, after=0) == [(5, "b", 2)]
        assert service.workers == workers


def test_what_is_sent_may_be_a_table_a_batch_arrays_or_records():
    numbers = pa.schema({"n": pa.int64()})
    with ps.serve(
        lambda scope, n: n, 2, threads=True, inputs={"n": numbers}, outputs={"n": {"n": "int64"}}
    ) as service:
        n = service.input("n")
        n.send(pa.table({"n": range(100_000)}))
        n.send(pa.RecordBatch.from_pydict({"n": [-1]}))
        n.send(pa.record_batch({"n": [-2]}))
        n.send([{"n": -3}])
        n.send([])
        n.send(pa.table({"n": pa.array([-4], pa.int8())}))
        n.advance_to(1)
        found = service.output("n").collect(upto=0)
        assert found.schema == numbers
        assert sorted(found["n"].to_pylist()) == list(range(-4, 100_000))


def test_a_large_table_is_dealt_to_all_workers():
    def who(scope, n):
        index = scope.index
        return n.map_batches(
            lambda batch: pa.RecordBatch.from_pydict({"who": [index], "n": [batch.num_rows]})
        )

    schema = {"who": pa.int64(), "n": pa.int64()}
    with ps.serve(
        who, 4, threads=True, inputs={"n": {"n": pa.int64()}}, outputs={"o": schema}
    ) as service:
        service.input("n").send(pa.table({"n": range(200_000)}))
        service.input("n").advance_to(1)
        got = Counter()
        for row in service.output("o").collect(upto=0).to_pylist():
            got[row["who"]] += row["n"]
    assert got == dict.fromkeys(range(4), 50_000)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_inputs_advance_at_speeds_of_their_own(workers):
    """A stored table is the first epoch of one input, and the other's stream goes on."""
    with serve(both, workers, {"left": WORD, "all": WORD}, left=WORD, right=WORD) as service:
        left, right = service.input("left"), service.input("right")
        right.send(pa.table({"word": ["stored"] * 10}))
        for epoch in range(3):
            left.send(rows(f"at {epoch}"))
            left.advance_to(epoch + 1)
        # Without the other input complete at 0, only what does not need it is.
        assert service.output("left").collect(upto=2).num_rows == 3
        assert (left.time, right.time) == (3, 0)
        assert service.probe.less_equal(0)
        assert not service.output("left").probe.less_equal(2)
        assert service.output("left").probe.less_than(4)
        right.close()
        assert service.output("all").collect(upto=2).num_rows == 13
        assert not service.probe.less_than(3)


def test_nothing_of_an_epoch_is_seen_before_it_is_complete():
    with serve() as service:
        service.input("words").send(rows("a"))
        assert service.output("counts").collect().num_rows == 0
        with pytest.raises(EpochError, match="epoch 0 of output 'counts' is not complete after 0"):
            service.output("counts").collect(upto=0, timeout_s=0)
        with pytest.raises(EpochError, match="input 'words' is at epoch 0"):
            service.probe.wait(0, timeout_s=0)


def test_stop_drains_and_what_came_out_can_be_read_afterwards():
    with serve() as service:
        service.input("words").send(rows("a"))
        service.input("words").advance_to(3)
        service.input("words").send(rows("a", "b"))
    assert counted(service) == [(0, "a", 1), (3, "a", 2), (3, "b", 1)]
    assert counted(service, upto=2) == [(0, "a", 1)]
    service.stop()
    with pytest.raises(StoppedError, match="stopped"):
        service.input("words").send(rows("a"))


def test_of_a_stopped_service_every_epoch_is_complete():
    with serve() as service:
        service.input("words").send(rows("a"))
        service.input("words").advance_to(1)
        service.probe.wait(0)
    for probe in (service.probe, service.output("counts").probe):
        probe.wait(0)
        probe.wait(7, timeout_s=None)
        assert probe.done
        assert not probe.less_than(7)
        assert not probe.less_equal(0)
        with pytest.raises(UsageError, match="an epoch is a whole number"):
            probe.wait("0")


def test_an_input_of_a_stopped_service_is_closed():
    with serve() as service:
        service.input("words").send(rows("a"))
    words = service.input("words")
    assert words.time is None
    words.close()
    with pytest.raises(StoppedError, match=r"'words' is closed .* more: the service"):
        words.send(rows("a"))
    with pytest.raises(StoppedError, match="input 'words' is closed"):
        words.advance_to(9)


@pytest.mark.parametrize("upto", [None, 0, 3])
def test_the_status_of_a_stopped_service_is_its_last(upto):
    with serve() as service:
        service.input("words").send(rows("a"))
        service.input("words").advance_to(5)
        service.probe.wait(1)
        service.output("counts").discard(1)
    assert service.status() == Status({"words": None}, {"counts": None}, {"counts": 1})
    if upto is not None:
        service.output("counts").discard(upto)
    assert service.status().discarded == {"counts": max(1, upto or 0)}
    assert "input 'words' is closed, output 'counts' is complete for ever" in str(service.status())


def test_a_probe_of_an_aborted_service_says_that_it_is():
    service = serve()
    service.abort()
    for use in (lambda: service.probe.wait(0), lambda: service.probe.done):
        with pytest.raises(StoppedError, match="aborted"):
            use()


def test_what_is_discarded_is_so_at_once_also_where_the_worker_is_at_work():
    at_work, goes_on = threading.Event(), threading.Event()

    def slow(batch):
        if batch.column("word")[0].as_py() == "slow":
            at_work.set()
            goes_on.wait(120)
        return batch

    def build(scope, words):
        return words.map_batches(slow)

    with ps.serve(
        build, 1, inputs={"words": WORD}, outputs={"words": WORD}, threads=True
    ) as service:
        service.input("words").send(rows("a"))
        service.input("words").advance_to(1)
        service.probe.wait(0)
        service.input("words").send(rows("slow"))
        service.input("words").advance_to(2)
        assert at_work.wait(120)
        try:
            service.output("words").discard(0)
            assert service.status().discarded == {"words": 0}
        finally:
            goes_on.set()


def test_an_abort_waits_for_a_worker_that_is_at_work():
    at_work, goes_on = threading.Event(), threading.Event()

    def slow(batch):
        at_work.set()
        goes_on.wait(120)
        return batch

    def build(scope, words):
        return words.map_batches(slow)

    service = ps.serve(build, 2, inputs={"words": WORD}, outputs={"words": WORD}, threads=True)
    service.input("words").send([{"word": "a"}])
    service.input("words").advance_to(1)
    assert at_work.wait(120)
    # Longer than the workers of a batch are waited for when one has failed.
    timer = threading.Timer(1.2, goes_on.set)
    timer.start()
    service.abort()
    assert goes_on.is_set()
    assert not [link.thread for link in workers_of(service) if link.thread.is_alive()]
    timer.join()


def test_an_exception_in_the_block_aborts_and_is_the_one_that_is_raised():
    service = serve()

    def use():
        with service:
            service.input("words").send(rows("a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    with pytest.raises(StoppedError):
        service.status()


def failing(scope, words):
    def check(batch):
        if "bad" in batch.column("word").to_pylist():
            raise ValueError("the very cause")
        return batch

    return words.exchange("word").map_batches(check)


USES = {
    "send": lambda service: service.input("words").send(rows("a")),
    "advance": lambda service: service.input("words").advance_to(9),
    "close": lambda service: service.input("words").close(),
    "time": lambda service: service.input("words").time,
    "collect": lambda service: service.output("words").collect(),
    "wait": lambda service: service.probe.wait(8),
    "probe": lambda service: service.probe.done,
    "discard": lambda service: service.output("words").discard(0),
    "stop": lambda service: service.stop(),
}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_fails_is_what_every_method_raises(workers):
    service = serve(failing, workers, {"words": WORD})
    service.input("words").send(rows("good", "bad"))
    began = time.monotonic()
    with contextlib.suppress(WorkerError):  # the worker may fail before this has returned
        service.input("words").advance_to(1)
    with pytest.raises(WorkerError, match="the very cause") as caught:
        service.probe.wait(0)
    assert time.monotonic() - began < 10 * slowdown()
    assert (caught.value.operator, caught.value.time) == ("MapBatches", 0)
    assert isinstance(caught.value.__cause__, ValueError)
    for use in USES.values():
        with pytest.raises(WorkerError, match="the very cause"):
            use(service)
    service.abort()


def test_who_waits_while_a_worker_fails_is_told():
    service, told = serve(failing, 2, {"words": WORD}), []

    def wait():
        try:
            service.output("words").collect(upto=5, timeout_s=None)
        except WorkerError as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    service.input("words").send(rows("bad"))
    with contextlib.suppress(WorkerError):  # the worker may fail before this has returned
        service.input("words").advance_to(1)
    waiting.join(60)
    assert len(told) == 1
    service.abort()


def test_what_is_forgotten_cannot_be_read_and_the_rest_can():
    with serve() as service:
        for epoch in range(4):
            service.input("words").send(rows("a"))
            service.input("words").advance_to(epoch + 1)
        service.probe.wait(3)
        service.output("counts").discard(1)
        service.output("counts").discard(0)
        assert counted(service, upto=3) == [(2, "a", 3), (3, "a", 4)]
        assert counted(service, after=2, upto=3) == [(3, "a", 4)]
        with pytest.raises(EpochError, match="from epoch 1: what came up to epoch 1 is discarded"):
            counted(service, after=0, upto=3)
        with pytest.raises(EpochError, match="epoch 7 of output 'counts' is not complete"):
            service.output("counts").discard(7)
    # Nor when it has stopped.
    assert counted(service, upto=3) == [(2, "a", 3), (3, "a", 4)]
    service.output("counts").discard(2)
    with pytest.raises(EpochError, match="from epoch 2: what came up to epoch 2 is discarded"):
        counted(service, after=1, upto=3)
    assert counted(service, after=2, upto=3) == counted(service) == [(3, "a", 4)]


def test_what_does_not_fit_is_refused_and_the_service_goes_on():
    with serve() as service:
        words = service.input("words")
        with pytest.raises(SchemaError, match="the records sent to 'words' have columns x"):
            words.send(pa.table({"x": [1]}))
        with pytest.raises(UsageError, match="a list of dicts, and not int"):
            words.send(7)
        with pytest.raises(UsageError, match=r"not a list with \(1, 2\) \(tuple\) in it"):
            words.send([(1, 2)])
        with pytest.raises(UsageError, match="no input 'word'; it has 'words'"):
            service.input("word")
        with pytest.raises(UsageError, match="no output 'count'; it has 'counts'"):
            service.output("count")
        words.advance_to(2)
        with pytest.raises(UsageError, match="at epoch 2 and can only advance to a later one"):
            words.advance_to(2)
        words.close()
        words.close()
        with pytest.raises(StoppedError, match="input 'words' is closed"):
            words.send(rows("a"))


@pytest.mark.parametrize("epoch", [True, 3.0, "3", None, 1 << 62])
def test_what_is_no_epoch_is_refused_and_the_service_goes_on(epoch):
    with serve() as service:
        words, counts = service.input("words"), service.output("counts")
        words.send(rows("a"))
        with pytest.raises(UsageError, match="epoch"):
            words.advance_to(epoch)
        words.advance_to(np.int64(1))
        assert words.time == 1
        if type(epoch) is not int:
            for ask in (
                service.probe.wait,
                service.probe.less_than,
                service.probe.less_equal,
                counts.discard,
            ):
                with pytest.raises(UsageError, match="an epoch is a whole number, and not"):
                    ask(epoch)
        assert counted(service, upto=np.int32(0)) == [(0, "a", 1)]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([{"n": 1, "m": []}, {"n": 1}], "record 1 of those sent to 'x' has columns n, and"),
        ([{"n": 1, "m": []}, {"n": 1, "m": [], "o": 2}], "has columns n, m, o, and that input"),
        ([{}], r"record 0 of those sent to 'x' has columns \(none\), and"),
        ([{"n": 1, "m": []}, {"n": "b", "m": []}], "the records that are sent to 'x' do not fit"),
        ([{"n": 1 << 70, "m": []}], "the records that are sent to 'x' do not fit"),
        ([{"n": object(), "m": []}], "the records that are sent to 'x' do not fit"),
    ],
)
def test_records_that_do_not_fit_are_refused_and_none_of_their_values_is_lost(sent, said):
    schema = {"n": pa.int64(), "m": pa.map_(pa.string(), pa.int64())}
    with serve(lambda scope, x: x, outputs={"y": schema}, x=schema) as service:
        x = service.input("x")
        with pytest.raises(SchemaError, match=said):
            x.send(sent)
        x.send([{"m": [("a", 1)], "n": 5}])
        x.advance_to(1)
        assert service.output("y").collect(upto=0).to_pylist() == [{"n": 5, "m": [("a", 1)]}]


def test_what_was_sent_goes_in_when_the_commit_is_tried_again(monkeypatch):
    with serve() as service:
        words = service.input("words")
        words.send(rows("a"))
        with monkeypatch.context() as patched:
            patched.setattr(words, "commit", lambda *told: service.input("disk is full"))
            with pytest.raises(UsageError, match="disk is full"):
                words.advance_to(1)
        words.advance_to(1)
        assert counted(service, upto=0) == [(0, "a", 1)]


def test_any_number_of_threads_may_stop_a_service_and_read_it_meanwhile():
    for _ in range(5):
        service = serve(workers=1)
        service.input("words").send(rows("a"))
        together, found = threading.Barrier(4), []

        def end(service=service, together=together, found=found):
            together.wait(120)
            service.stop()
            found.append(counted(service))

        def read(service=service, together=together, found=found):
            together.wait(120)
            found.append(counted(service, upto=0))

        threads = [threading.Thread(target=run) for run in (end, end, end, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[(0, "a", 1)]] * 4


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("threads", [True, False])
def test_a_service_is_of_the_process_that_started_it(threads):
    inputs, outputs = {"words": WORD}, {"counts": COUNT}
    with ps.serve(totals, 2, threads=threads, inputs=inputs, outputs=outputs) as service:
        service.input("words").send([{"word": "a"}])
        service.input("words").advance_to(1)
        assert service.output("counts").collect(upto=0).num_rows == 1
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            for use in (service.status, service.stop, service.abort):
                try:
                    use()
                except UsageError as error:
                    os.write(writes, f"{use.__name__}: {error}\n".encode())
            abandoned(service._supervisor, None, None)
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            said = pipe.read().splitlines()
        assert os.waitpid(child, 0)[1] == 0
        assert [line.partition(": ")[0] for line in said] == ["status", "stop"]
        assert all(f"process {os.getpid()} is used in process {child}" in line for line in said)
        service.input("words").send([{"word": "b"}])
        service.input("words").advance_to(2)
        assert service.output("counts").collect(upto=1).num_rows == 2


def test_a_service_that_nobody_has_any_more_is_aborted():
    services = [serve()]
    termination = services[0]._supervisor.termination
    services.clear()
    with pytest.warns(ResourceWarning, match="a service that was never stopped is aborted"):
        gc.collect()
    with pytest.raises(StoppedError, match="leave its block, or call stop"):
        termination.check()


@pytest.mark.parametrize(
    ("build", "error", "said"),
    [
        (lambda scope, words: None, BuildError, "should return the stream of its output, or a"),
        (lambda scope, words: {"other": words}, BuildError, "returned streams for 'other'"),
        (lambda scope, words: {"counts": 7}, BuildError, "as output 'counts', and returned 7"),
    ],
)
def test_a_build_that_returns_something_else_is_an_error(build, error, said):
    with pytest.raises(WorkerError, match=said) as caught:
        serve(build)
    assert isinstance(caught.value.__cause__, error)


def test_what_cannot_be_is_said_before_anything_starts():
    with pytest.raises(BuildError, match="cannot be called with a scope and the inputs a, b"):
        serve(totals, a=WORD, b=WORD)
    with pytest.raises(UsageError, match="at least one worker; 0"):
        serve(workers=0)
    with pytest.raises(UsageError, match="'words' needs a schema"):
        serve(words=3)
    with pytest.raises(UsageError, match="at least one output"):
        ps.serve(totals, inputs={"words": WORD}, outputs={})
    with pytest.raises(UsageError, match="at least one worker; '2'"):
        serve(workers="2")
    with pytest.raises(BuildError, match="should be a function of a scope and the inputs words"):
        serve(build=None)
    with pytest.raises(UsageError, match="inputs= is a dict of names to schemas"):
        ps.serve(totals, inputs=["words"], outputs={"counts": COUNT})
    with pytest.raises(UsageError, match="a name in inputs= is a text that is not empty, and not"):
        ps.serve(totals, inputs={"": WORD}, outputs={"counts": COUNT})
    for columns in ([], [("a", pa.int64()), ("a", pa.int64())]):
        with pytest.raises(UsageError, match="one column or more, each with a name of its own"):
            serve(words=columns)


@pytest.mark.parametrize(
    ("build", "error", "said"),
    [
        (lambda scope, words: words, SchemaError, "records of output 'counts' have columns word"),
        (lambda scope, words: words.map_batches(list), ContainerError, "should be columns"),
    ],
)
def test_an_output_that_does_not_fit_its_schema_fails_the_service(build, error, said):
    service = serve(build)
    service.input("words").send(rows("a"))
    with contextlib.suppress(WorkerError):  # the worker may fail before this has returned
        service.input("words").advance_to(1)
    with pytest.raises(WorkerError, match=said):
        service.stop()


def reached(scope, edges):
    """What can be reached from 0, epoch by epoch: a loop inside of the service."""

    def step(batch):
        n = batch.column("n").to_numpy()
        return pa.RecordBatch.from_pydict({"n": n[n < 50] + 1})

    with scope.iterative() as inner:
        loop, again = inner.feedback(1)
        every = edges.enter(inner).concat(again).exchange("n")
        loop.connect(every.map_batches(step))
        return every.leave()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_epoch_may_go_round_a_loop(workers):
    number = {"n": pa.int64()}
    with ps.serve(
        reached, workers, threads=True, inputs={"edges": number}, outputs={"n": number}
    ) as service:
        for epoch in range(3):
            service.input("edges").send([{"n": 0}])
            service.input("edges").advance_to(epoch + 1)
            found = service.output("n").collect(upto=epoch, after=epoch - 1)
            assert sorted(found["n"].to_pylist()) == list(range(51))


@settings(max_examples=examples(25))
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), min_size=1, max_size=8
    ),
    st.sampled_from([1, 2, 3]),
)
def test_any_sequence_of_sends_and_advances_is_counted(steps, workers):
    expected, now, seen = {}, 0, Counter()
    with serve(workers=workers) as service:
        for word, n, advances in steps:
            service.input("words").send(rows(*[word] * n))
            seen[word] += n
            expected[now, word] = seen[word]
            if advances:
                now += n
                service.input("words").advance_to(now)
    assert counted(service) == sorted((epoch, word, n) for (epoch, word), n in expected.items())


def test_an_input_whose_name_is_mistyped_is_refused_by_name():
    def build(scope, left, right):
        return left.concat(right)

    numbers = {"n": pa.int64()}
    with pytest.raises(BuildError, match="takes 'right', and the service has 'rihgt': its inputs"):
        ps.serve(build, inputs={"rihgt": numbers, "left": numbers}, outputs={"n": numbers})
    with pytest.raises(BuildError, match="takes 'a', 'b', and the service has 'left', 'right'"):
        ps.serve(
            lambda scope, a, b: a.concat(b),
            inputs={"left": numbers, "right": numbers},
            outputs={"n": numbers},
        )
