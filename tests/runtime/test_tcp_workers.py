"""Whole dataflows on workers that meet by a list of addresses, and how they end together.

Nobody starts these workers but the test: what one knows of another came over TCP.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.communication.failure import failure, first_cause
from pointstamp.communication.processes import run_processes
from pointstamp.communication.target import run_target
from pointstamp.communication.tcp import Listener, connect, listen
from pointstamp.errors import OperatorError, PeerFailedError, UsageError, WorkerError
from tests.communication.runners import run_tcp
from tests.slowness import slowdown

SECRET = b"the secret of these workers"
LIMIT_S = 120.0


def meeting(main: Callable[..., Any], workers: int) -> list[Any]:
    """What became of `main` on each of some threads: its result, or (exception, when)."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(listen()) for _ in range(workers)]
        addresses = [listener.address for listener in listeners]
        ended: list[Any] = [None] * workers

        def live(index: int, listener: Listener) -> None:
            try:
                mesh = connect(index, addresses, SECRET, listener=listener, timeout_s=LIMIT_S)
                ended[index] = run_target(mesh, lambda mesh: ps.run_worker(mesh, main))
            except Exception as error:  # noqa: BLE001  (looked at by the test)
                ended[index] = error, time.monotonic()

        threads = [
            threading.Thread(target=live, args=(index, listener), daemon=True)
            for index, listener in enumerate(listeners)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert not any(thread.is_alive() for thread in threads), ended
    return ended


def rounds(worker: Any, function: Callable[[int], int], n_rounds: int) -> list[int]:
    """In each round every worker sends a number, and waits until it has come through."""
    seen: list[int] = []
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().map(function).inspect(seen.append).exchange().probe()
    for number in range(n_rounds):
        input.send(worker.peers * number + worker.index)
        input.advance_to(number + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return seen


def fail_at(wrong: int, number: int) -> int:
    if number == wrong:
        raise LookupError(f"{number} is not to be found")
    return number


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_dataflow_over_tcp_does_what_it_does_elsewhere(workers: int) -> None:
    ended = meeting(functools.partial(rounds, function=abs, n_rounds=20), workers)
    assert sorted(x for seen in ended for x in seen) == list(range(20 * workers))
    elsewhere = ps.execute(rounds, abs, 20, workers=workers, threads=True)
    # On the same worker each; who sends first within a round is chance.
    assert [sorted(seen) for seen in ended] == [sorted(seen) for seen in elsewhere]


def test_when_an_operator_raises_all_workers_over_tcp_stop_and_name_it() -> None:
    main = functools.partial(rounds, function=functools.partial(fail_at, 22), n_rounds=10**9)
    ended = meeting(main, 3)
    failed = [index for index, (error, _) in enumerate(ended) if isinstance(error, OperatorError)]
    assert len(failed) == 1  # whoever was sent 22: worker 1, in its round 7
    error, when = ended[failed[0]]
    assert (error.operator, error.time) == ("Map", 7)
    assert isinstance(error.__cause__, LookupError)
    said = "operator 'Map' failed at time 7: LookupError('22 is not to be found')"
    assert str(error).startswith(f"{said}, in fail_at at {__file__}:")
    assert str(error).endswith(", called with wrong=22, number=22")
    for index, (other, later) in enumerate(ended):
        if index not in failed:
            assert isinstance(other, PeerFailedError)
            assert other.peer == failed[0]
            assert str(other).startswith(f"worker {failed[0]} failed: ")
            assert said in str(other)
            # A second is the promise; the others are for a machine that does other things, too.
            assert later - when < 5 * slowdown()
    found = first_cause([failure(index, *ended[index]) for index in range(3)])
    assert (found.worker, found.operator, found.time) == (failed[0], "Map", 7)


def test_when_an_operator_raises_processes_over_tcp_stop_with_the_first_cause() -> None:
    def target(mesh: Any) -> Any:
        return ps.run_worker(mesh, rounds, functools.partial(fail_at, 15), 10**9)

    with pytest.raises(WorkerError, match="15 is not to be found") as caught:
        run_tcp(run_processes, target, 2)
    assert (caught.value.operator, caught.value.time) == ("Map", 7)
    assert isinstance(caught.value.__cause__, LookupError)


def rounds_added_up(worker: Any, n_rounds: int) -> tuple[list[int], list[int], str]:
    seen = rounds(worker, abs, n_rounds)
    return sorted(seen), worker.communicator.machines, type(worker._progress).__name__


def test_workers_of_two_machines_add_up_their_progress() -> None:
    def target(mesh: Any) -> Any:
        return ps.run_worker(mesh, rounds_added_up, 20, accumulate=True)

    ended = run_tcp(run_processes, target, 4, n_machines=2)
    seen = [found for found, *_ in ended]
    assert sorted(x for found in seen for x in found) == list(range(80))
    assert seen == [sorted(each) for each in ps.execute(rounds, abs, 20, workers=4, threads=True)]
    assert [rest for _, *rest in ended] == [[[0, 1, 0, 1], "AccumulatedExchange"]] * 4


def test_workers_that_share_no_memory_are_on_machines_of_their_own() -> None:
    def target(mesh: Any) -> Any:
        return ps.run_worker(mesh, rounds_added_up, 3, accumulate=True)

    ended = run_tcp(run_processes, target, 2)
    assert [rest for _, *rest in ended] == [[[0, 1], "ProgressExchange"]] * 2


@pytest.mark.parametrize("threads", [False, True])
def test_workers_of_one_machine_add_up_their_progress(threads: bool) -> None:
    def main(worker: Any) -> tuple[list[int], str]:
        return sorted(rounds(worker, abs, 20)), type(worker._progress).__name__

    ended = ps.execute(main, workers=3, threads=threads, accumulate=True)
    assert [kind for _, kind in ended] == ["AccumulatedExchange"] * 3
    flat = ps.execute(main, workers=3, threads=threads)
    assert [kind for _, kind in flat] == ["ProgressExchange"] * 3
    assert [seen for seen, _ in ended] == [seen for seen, _ in flat]


@pytest.mark.parametrize("accumulate", [1, "yes", None])
def test_another_accumulate_is_refused(accumulate: Any) -> None:
    with pytest.raises(UsageError, match="accumulate is True or False"):
        ps.execute(abs, workers=2, accumulate=accumulate)
