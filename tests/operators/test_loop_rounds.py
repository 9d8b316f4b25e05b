"""How often loops went round, asked when all is over."""

from __future__ import annotations

import pointstamp as ps
from pointstamp.operators.loop_rounds import LoopRounds


def rounds(build, workers=1):
    """What each worker says of the loops that `build` makes."""

    def main(worker):
        with worker.dataflow() as scope:
            build(scope)
        worker.run()
        return LoopRounds.beside(scope).most()

    return ps.simulate(main, workers=workers, seed=3)


def count_down(scope, numbers, inner_name="Iterative", **names):
    """Each number goes round as often as it says."""
    with scope.iterative(name=inner_name) as inner:
        loop, again = inner.feedback(1, **names)
        alive = numbers.enter(inner).concat(again).filter(lambda x: x > 0)
        loop.connect(alive.map(lambda x: x - 1))
        return alive.leave()


def test_a_loop_goes_by_its_name_or_by_that_of_its_scope():
    def build(scope):
        numbers = scope.to_stream([4, 7, 2])
        count_down(scope, numbers)
        count_down(scope, numbers.map(lambda x: x + 1), "Scope", name="Loop")

    assert rounds(build) == [{"Iterative": 7, "Loop": 8}]


def test_loops_of_one_name_are_as_deep_as_the_deepest():
    def build(scope):
        count_down(scope, scope.to_stream([5]))
        count_down(scope, scope.to_stream([3]))

    assert rounds(build) == [{"Iterative": 5}]


def test_a_loop_in_a_loop_says_the_most_of_any_round_outside():
    def build(scope):
        with scope.iterative(name="Outer") as outer:
            loop, again = outer.feedback(1)
            numbers = scope.to_stream([3]).enter(outer).concat(again).filter(lambda x: x > 0)
            count_down(outer, numbers, "Inner")  # 3 times, then 2, then 1
            loop.connect(numbers.map(lambda x: x - 1))

    assert rounds(build) == [{"Outer": 3, "Inner": 3}]


def test_the_most_is_of_any_epoch_not_of_the_last():
    def main(worker):
        with worker.dataflow() as scope:
            input, numbers = scope.new_input()
            count_down(scope, numbers)
        for epoch, number in enumerate([2, 9, 1]):
            input.advance_to(epoch)
            input.send(number)
        input.close()
        worker.run()
        return LoopRounds.beside(scope).most()

    assert ps.simulate(main, workers=1, seed=5) == [{"Iterative": 9}]


def test_a_loop_of_the_outermost_scope_counts_times():
    def build(scope):
        loop, again = scope.feedback(2, limit=7)
        loop.connect(scope.to_stream([0]).concat(again).map(lambda x: x + 1))

    assert rounds(build) == [{"Dataflow": 6}]


def test_a_loop_that_nothing_went_round_says_so_and_each_worker_has_its_own():
    def build(scope):
        numbers = scope.to_stream([4] if scope.index == 0 else [])
        count_down(scope, numbers)

    assert rounds(build, workers=2) == [{"Iterative": 4}, {"Iterative": 0}]
    assert rounds(lambda scope: scope.to_stream([1])) == [{}]


def test_times_whose_rounds_are_no_integers_are_not_counted():
    def build(scope):
        pairs = ps.Product(ps.Int, ps.Int)
        with scope.scoped(ps.Product(ps.Int, pairs)) as inner:
            loop, again = inner.feedback((0, 1))
            alive = scope.to_stream([2]).enter(inner).concat(again).filter(lambda x: x > 0)
            loop.connect(alive.map(lambda x: x - 1))

    assert rounds(build) == [{}]
