"""What operators of several workers compare while they run."""

from __future__ import annotations

from pointstamp.dataflow.comparisons import N_ENDED, Comparisons


def test_what_is_published_goes_to_the_instance_of_that_number() -> None:
    sent: list[tuple[int, str]] = []
    one = Comparisons(lambda number, value: sent.append((number, value)))
    first, second = ([], [])  # type: tuple[list[str], list[str]]
    publish = [one.add(taken.append)[0] for taken in (first, second)]
    publish[1]("of the second")
    assert sent == [(1, "of the second")]
    one.receive(1, "theirs")
    assert (first, second) == ([], ["theirs"])


def test_what_is_early_waits_for_its_instance() -> None:
    one = Comparisons()
    one.receive(0, "a")
    one.receive(0, "b")
    found: list[str] = []
    one.add(found.append)
    assert found == ["a", "b"]


def test_what_has_ended_compares_on_for_a_while() -> None:
    one = Comparisons()
    found: list[int] = []
    for number in range(N_ENDED + 1):
        _, end = one.add(found.append)
        end()
        one.receive(number, number)
    assert found == list(range(N_ENDED + 1))
    one.receive(0, -1)  # the first is forgotten
    assert found[-1] == N_ENDED
    assert len(one) == N_ENDED
