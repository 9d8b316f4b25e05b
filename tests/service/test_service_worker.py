"""A worker of a service alone: attempts, commits, aborts, and what they leave behind."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import EpochError, ServiceError, StoppedError, UsageError, WorkerError
from pointstamp.service.protocol import StagingHandle
from pointstamp.service.worker_buffers import InputFeeder
from tests.service.direct import workers_of

NUMBER = pa.schema({"n": pa.int64()})


@pytest.fixture
def workers():
    """The links of a service of two workers, and what it has for output n."""
    with ps.serve(
        lambda scope, n: n.exchange("n"),
        2,
        threads=True,
        inputs={"n": NUMBER},
        outputs={"n": NUMBER},
    ) as service:
        yield (
            workers_of(service),
            lambda upto: sorted(service.output("n").collect(upto=upto)["n"].to_pylist()),
        )


def batch(*numbers):
    return [pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})]


def test_only_committed_attempts_come_out_and_the_others_are_dropped(workers):
    (zero, one), found = workers
    first = one.stage("n", 0, batch(1), "task 0, try 0")
    again = zero.stage("n", 0, batch(1), "task 0, try 1")  # of a task that was tried again
    other = one.stage("n", 0, batch(2), "task 1, try 0")
    assert first != again
    assert zero.commit("n", 0, [again, other], 1)
    assert found(0) == [1, 2]
    assert (len(zero.staging), len(one.staging)) == (0, 0)


def test_a_repeated_commit_changes_nothing_whomever_it_names(workers):
    (zero, one), found = workers
    staged = [one.stage("n", 0, batch(1)), zero.stage("n", 0, batch(2))]
    assert zero.commit("n", 0, staged, 1)
    assert not zero.commit("n", 0, staged, 1)
    assert not zero.commit("n", 0, [one.stage("n", 0, batch(3))], 1)
    assert zero.commit("n", 1, [one.stage("n", 1, batch(4))], 2)
    assert found(1) == [1, 2, 4]
    # What a late attempt had staged for a decided epoch is gone with the next commit.
    assert (len(zero.staging), len(one.staging)) == (0, 0)


def test_an_attempt_that_is_staged_twice_is_there_once(workers):
    (zero, one), found = workers
    once = one.stage("n", 0, batch(1, 2), "a")
    assert one.stage("n", 0, batch(1, 2), "a") == once
    assert zero.commit("n", 0, [once, once], 1)
    assert found(0) == [1, 2]


def test_an_abort_drops_what_is_staged_and_not_what_is_decided(workers):
    (zero, one), found = workers
    rejected, attempt = one.stage("n", 0, batch(1)), one.stage("n", 0, batch(2))
    zero.abort([rejected])
    zero.abort([rejected])
    assert zero.commit("n", 0, [attempt], 1)
    zero.abort([attempt])
    assert found(0) == [2]
    assert zero.commit("n", 3, [zero.stage("n", 3, batch(5))], 4)
    assert found(3) == [2, 5]


def test_an_aborted_epoch_can_be_tried_again(workers):
    (zero, one), found = workers
    zero.abort([one.stage("n", 0, batch(1))])
    assert zero.commit("n", 0, [one.stage("n", 0, batch(1))], 1)
    assert found(0) == [1]


def test_a_commit_of_what_is_not_there_decides_nothing(workers):
    (zero, one), found = workers
    with pytest.raises(UsageError, match="attempt 'x' is none of this service"):
        zero.commit("n", 0, [StagingHandle("n", 0, "x", 1, 1)], 1)
    aborted = one.stage("n", 0, batch(7))
    with pytest.raises(UsageError, match="none of this service, or was changed"):
        zero.commit("n", 0, [replace(aborted, rows=2)], 1)
    with pytest.raises(UsageError, match="none of this service, or was changed"):
        zero.abort([replace(aborted, rows=2)])
    zero.abort([aborted])
    with pytest.raises(ServiceError, match="epoch 0 of input 'n' was aborted: stage it again"):
        zero.commit("n", 0, [aborted], 1)
    with pytest.raises(UsageError, match="attempt 'x', which was staged for epoch 1 of 'n'"):
        zero.commit("n", 0, [StagingHandle("n", 1, "x", 0, 1)], 1)
    with pytest.raises(UsageError, match="cannot go on from epoch 3 to 3"):
        zero.commit("n", 3, [], 3)
    with pytest.raises(ServiceError, match="worker 1 only stages and reads: ask worker 0"):
        one.commit("n", 0, [], 1)
    assert zero.commit("n", 0, [one.stage("n", 0, batch(1))], 1)
    assert found(0) == [1]


def test_a_commit_completes_although_another_input_is_behind():
    with ps.serve(
        lambda scope, a, b: a.concat(b),
        2,
        threads=True,
        inputs={"a": NUMBER, "b": NUMBER},
        outputs={"n": NUMBER},
    ) as service:
        zero = workers_of(service)[0]
        assert zero.commit("a", 5, [], 6)
        assert zero.await_completion(5, 5.0)
        assert not zero.wait(None, 0, 0.0)
        assert zero.commit("b", 2, [], 3)
        assert zero.await_completion(5, 5.0)
        assert zero.wait(None, 2, 5.0)


def test_an_input_that_is_behind_holds_back_only_what_it_leads_to():
    def build(scope, a, b):
        with scope.region() as region:  # only one of its ways leads from b to the outside
            inner_a, inner_b = a.enter(region), b.enter(region)
            alone, both = inner_a.leave(), inner_a.concat(inner_b).leave()
        return {"alone": alone, "both": both}

    outputs = {"alone": NUMBER, "both": NUMBER}
    with ps.serve(
        build, 2, threads=True, inputs={"a": NUMBER, "b": NUMBER}, outputs=outputs
    ) as service:
        zero = workers_of(service)[0]
        assert zero.commit("a", 5, [], 6)
        assert zero.await_completion(5, 30.0)
        assert zero.wait("alone", 5, 0.0)
        assert not zero.wait("both", 5, 0.0)
        assert zero.commit("b", 7, [], 8)
        assert zero.await_completion(7, 30.0)
        assert zero.wait("both", 5, 0.0)


def test_an_output_is_a_stream_of_the_outermost_scope():
    def build(scope, n):
        return n.enter(scope.region())

    with pytest.raises(WorkerError, match=r"output .n. of the service.*bring it there with enter"):
        ps.serve(build, threads=True, inputs={"n": NUMBER}, outputs={"n": NUMBER})


class Handle:
    """An input that is held back after every batch, until it is let go on."""

    def __init__(self):
        self.told, self.is_throttled = [], False

    def advance_to(self, epoch):
        self.told.append(epoch)

    def send_batch(self, batch):
        self.told.append(batch)
        self.is_throttled = True

    def close(self):
        self.told.append("closed")


def test_an_input_that_is_held_back_is_fed_in_order_when_it_may_go_on():
    handle = Handle()
    source = InputFeeder(handle)
    source.admit(3, ["a", "b"], 4)
    source.admit(4, [], None)
    source.feed()
    source.feed()
    assert handle.told == [3, "a"]
    for _ in range(2):
        handle.is_throttled = False
        source.feed()
    assert handle.told == [3, "a", "b", 4, 4, "closed"]


def test_an_input_that_another_client_drives_as_well_goes_on_from_there():
    with ps.serve(
        lambda scope, n: n, 2, threads=True, inputs={"n": NUMBER}, outputs={"n": NUMBER}
    ) as service:
        other, n = workers_of(service)[0], service.input("n")
        assert other.commit("n", 0, [], 2)
        n._commit(0, 5)  # as if the other had come between the look and the commit
        assert n.time == 5
        n.send([{"n": 1}])
        assert other.commit("n", 5, [], 6)
        with pytest.raises(EpochError, match="committed by another client; what was sent"):
            n.advance_to(7)
        n.send([{"n": 2}])
        assert other.commit("n", 6, [], 7)
        n.send([{"n": 3}])  # at another epoch than what was sent before
        with pytest.raises(
            EpochError, match=r"epoch 6 .* what was sent here, 2 records, is not in"
        ):
            n.advance_to(8)
        n.send([{"n": 4}])
        assert other.commit("n", 7, [], 8)
        with pytest.raises(
            EpochError, match=r"epoch 7 .* what was sent here, 1 records, is not in"
        ):
            n.close()
        assert service._supervisor.reached.closed == set()  # so that no restart closes it
        n.send([{"n": 5}])
        assert other.commit("n", 8, [], None)
        with pytest.raises(StoppedError, match=r"'n' is closed, by another client; .* 1 records"):
            service.stop()
        assert service._supervisor.reached.closed == {"n"}


def test_sending_and_advancing_are_three_requests(monkeypatch):
    """Each is a call over the network where the workers are elsewhere."""
    with ps.serve(
        lambda scope, n: n, 2, threads=True, inputs={"n": NUMBER}, outputs={"n": NUMBER}
    ) as service:
        asked = []

        def asking(question, until=None, ask=service._supervisor.ask):
            asked.append(question)
            return ask(question, until)

        monkeypatch.setattr(service._supervisor, "ask", asking)
        service.input("n").send([{"n": 1}])  # where the input is, and what is staged
        assert len(asked) == 2
        service.input("n").advance_to(1)
        assert len(asked) == 3
        monkeypatch.undo()


def test_what_was_sent_to_an_input_that_another_client_has_closed_is_refused():
    with ps.serve(
        lambda scope, n: n, 1, threads=True, inputs={"n": NUMBER}, outputs={"n": NUMBER}
    ) as service:
        n = service.input("n")
        n.send([{"n": 1}])
        assert workers_of(service)[0].commit("n", 0, [], None)
        with pytest.raises(StoppedError, match="input 'n' is closed"):
            n.advance_to(1)
