"""What operators have to do with the world outside: threads that call, things to close."""

from __future__ import annotations

import threading

import pytest

import pointstamp as ps
from pointstamp.errors import WorkerError


def closing_dataflow(worker, closed, name="one", logic=lambda x: x):
    with worker.dataflow(name) as scope:
        scope.environment.closers.callback(closed.append, name)
        return scope.to_stream([1]).map(logic).probe()


def test_what_was_begun_is_closed_when_its_dataflow_is_complete():
    def main(worker):
        closed = []
        with worker.dataflow("open") as scope:
            scope.environment.closers.callback(closed.append, "open")
            input, stream = scope.new_input()
            stream.probe()
        probe = closing_dataflow(worker, closed)
        worker.step_while(lambda: not probe.done)
        while worker.has_work:
            worker.step()
        seen = list(closed)
        input.close()
        worker.run()
        return seen, closed

    assert ps.execute(main) == [(["one"], ["one", "open"])]


def test_what_was_begun_is_closed_when_the_worker_fails():
    closed = []

    def main(worker):
        closing_dataflow(worker, closed, "first", logic=lambda x: x / 0)
        closing_dataflow(worker, closed, "second")

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        ps.execute(main, threads=True)
    assert sorted(closed) == ["first", "second"]


def test_what_was_begun_is_closed_when_the_dataflow_is_not_well_made():
    closed = []

    def main(worker):
        with worker.dataflow() as scope:
            scope.environment.closers.callback(closed.append, "it")
            scope.feedback(1)

    with pytest.raises(WorkerError, match="never connected"):
        ps.execute(main, threads=True)
    assert closed == ["it"]


def test_one_that_fails_to_close_keeps_no_other_from_it():
    closed = []

    def fail():
        raise OSError("no such pipe")

    def main(worker):
        with worker.dataflow() as scope:
            scope.environment.closers.callback(closed.append, "it")
            scope.environment.closers.callback(fail)

    with pytest.raises(WorkerError, match="no such pipe"):
        ps.execute(main, threads=True)
    assert closed == ["it"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_thread_has_an_operator_run_of_a_worker_that_is_parked(workers):
    def main(worker):
        parked, answer = threading.Event(), []

        def build(capability, info):
            environment = scope.environment

            def outside():
                parked.wait(10)
                answer.append(worker.index)
                environment.call(info.activate)

            thread = threading.Thread(target=outside)
            thread.start()
            environment.closers.callback(thread.join)

            def logic(input, output):
                if answer and capability.live:
                    with capability, output.session(capability) as session:
                        session.give(answer[0])

            return logic

        seen = []
        with worker.dataflow() as scope:
            asked = scope.to_stream([]).unary(ps.Pipeline(), "Ask", build)
            asked.inspect(seen.append)
        while worker.has_work:
            worker.step()
        parked.set()
        worker.run()
        return seen

    assert ps.execute(main, workers=workers) == [[index] for index in range(workers)]
