"""The sweep of a dictionary frees what nothing names, by pieces; what is freed is never read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from pointstamp.containers.dictionary import Dictionary
from pointstamp.containers.key_hashes import stable_hash
from pointstamp.containers.text_order import TextOrder
from pointstamp.containers.text_sweep import Held, TextSweeps
from pointstamp.errors import InternalError


class Holder:
    """Names some numbers, or refuses."""

    called = "a view"
    runs_code = False

    def __init__(self, numbers: Iterable[int] = (), why_not: str = "") -> None:
        self.rows = np.array([[number, 1] for number in numbers], np.int64).reshape(-1, 2)
        self.why_not = why_not
        self.is_at_work = False
        self.is_still = False

    def never_says(self) -> str:
        return ""

    def holds_still(self) -> bool:
        self.is_still = not self.is_at_work
        return self.is_still

    def goes_on(self) -> None:
        self.is_still = False

    def refuses_sweep(self) -> str:
        return self.why_not

    def held_texts(self) -> list[Held]:
        assert self.is_still
        return [(self.rows, (0,))]


@pytest.fixture
def dictionary() -> Dictionary:
    return Dictionary()


@pytest.fixture
def sweeps(dictionary: Dictionary, monkeypatch: pytest.MonkeyPatch) -> TextSweeps:
    monkeypatch.setattr("pointstamp.containers.text_sweep.n_users", lambda: 0)
    sweeps = TextSweeps(dictionary, TextOrder(dictionary))
    sweeps.spare = -(1 << 40)  # one begins whenever it may
    return sweeps


def texts(n: int, begin: int = 0) -> list[bytes]:
    return [b"a text that is long enough %d" % number for number in range(begin, begin + n)]


def swept(sweeps: TextSweeps) -> None:
    sweeps.advance()
    sweeps.finish()


def test_what_is_named_stays_and_the_rest_goes(dictionary: Dictionary, sweeps: TextSweeps) -> None:
    numbers = dictionary.numbers(texts(10))
    holder = Holder(numbers[::2])
    sweeps.add_holder(holder)
    swept(sweeps)
    assert dictionary.values(numbers[::2]) == texts(10)[::2]
    for number in numbers[1::2]:
        with pytest.raises(InternalError, match=f"the number {number} was freed"):
            dictionary.value(number)
        with pytest.raises(InternalError, match="was freed"):
            dictionary.values([numbers[0], number])
        with pytest.raises(InternalError, match="was freed"):
            dictionary.hashes(np.array([numbers[0], number]))
        with pytest.raises(InternalError, match="was freed"):
            dictionary.ranks(np.array([numbers[0], number]))
    assert len(dictionary) == sweeps.stats().entries == sweeps.stats().used == 6


def test_what_comes_while_it_is_asked_what_is_held_has_no_sweep_begin(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    class Giving(Holder):
        """Hands what it holds to a new one when it is asked, as a message that is taken in."""

        def held_texts(self) -> list[Held]:
            if self.rows.size:
                taken.append(Holder(self.rows[:, 0].tolist()))
                sweeps.add_holder(taken[0])
                self.rows = self.rows[:0]
            return super().held_texts()

    taken: list[Holder] = []
    number = dictionary.number(b"a text that is handed over")
    giving = Giving([number])
    sweeps.add_holder(giving)
    for _ in range(3):
        swept(sweeps)
    assert len(taken) == 1
    assert dictionary.value(number) == b"a text that is handed over"
    assert sweeps.stats().sweeps == 2


def test_a_number_is_used_again_after_the_next_sweep(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    first = dictionary.numbers(texts(4))
    dictionary.hashes(np.array(first))
    swept(sweeps)
    second = dictionary.numbers(texts(4, 4))
    assert not set(first) & set(second)
    swept(sweeps)
    third = dictionary.numbers(texts(4, 8))
    assert set(third) == set(first)
    assert dictionary.values(third) == texts(4, 8)
    hashes = np.array([stable_hash(text) for text in texts(4, 8)], np.uint64).view(np.int64)
    assert (dictionary.hashes(np.array(third)) == hashes).all()


def test_what_is_asked_for_while_a_sweep_goes_on_stays(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    numbers = dictionary.numbers(texts(100))
    holder = Holder(numbers[:50])
    sweeps.add_holder(holder)
    sweeps.piece, sweeps.spare = 10, 0
    sweeps.advance()
    # Twice, as the second time it is found where it is looked for first.
    for _ in range(2):
        assert dictionary.number(texts(100)[70]) == numbers[70]
        new = dictionary.number(b"one that is new")
        sweeps.advance()
    sweeps.finish()
    assert dictionary.value(numbers[70]) == texts(100)[70]
    assert dictionary.value(new) == b"one that is new"
    assert len(dictionary) == 1 + 50 + 2


def test_values_of_any_kind_are_swept(dictionary: Dictionary, sweeps: TextSweeps) -> None:
    values = [(1, "a"), "b", b"b", 7, None, float("nan"), frozenset({3})]
    numbers = dictionary.numbers(values)
    holder = Holder(numbers[::2])
    sweeps.add_holder(holder)
    swept(sweeps)
    assert dictionary.values(numbers[:5:2]) == values[:5:2]
    with pytest.raises(InternalError, match="was freed"):
        dictionary.value(numbers[1])
    assert dictionary.number_of("b") != numbers[1]
    assert dictionary.number_of((1, "a")) == numbers[0]


def test_no_sweep_begins_where_a_holder_refuses_or_results_are_made(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    dictionary.numbers(texts(10))
    holder = Holder(why_not="it is at work")
    sweeps.add_holder(holder)
    swept(sweeps)
    assert (sweeps.stats().refused, len(dictionary)) == ("it is at work", 11)
    holder.why_not = ""
    with sweeps.held_back():
        swept(sweeps)
        assert (sweeps.stats().refused != "", len(dictionary)) == (True, 11)
    swept(sweeps)
    assert (sweeps.stats().refused, len(dictionary)) == ("", 1)


def test_no_sweep_begins_while_something_else_may_hold_texts(
    dictionary: Dictionary, sweeps: TextSweeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointstamp.containers.text_sweep.n_users", lambda: 2)
    dictionary.numbers(texts(10))
    swept(sweeps)
    assert sweeps.stats().refused.startswith("2 workers in this process")
    assert len(dictionary) == 11


def test_constants_are_pinned_as_long_as_a_holder_has_them(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    known = dictionary.number(b"known")
    with dictionary.pinning() as pins:
        assert dictionary.number(b"known") == known == dictionary.number(b"known")
        new = dictionary.number_of("new")
    later = dictionary.number(b"later")
    assert pins == {known, new}
    holder = Holder(pins)
    sweeps.add_holder(holder)
    swept(sweeps)
    assert dictionary.values([known, new]) == [b"known", "new"]
    with pytest.raises(InternalError):
        dictionary.value(later)


def test_labels_of_texts_that_were_freed_do_not_disturb_the_order(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    order = sweeps.order
    random = np.random.default_rng(1)
    kept: dict[bytes, tuple[int, list[int]]] = {}
    for turn in range(30):
        new = [b"they begin all alike %04d" % n for n in random.integers(0, 600, 40)]
        for text, number in zip(new, dictionary.numbers(new), strict=True):
            words = order.words(np.array([number]))[0].tolist()
            assert kept.setdefault(text, (number, words)) == (number, words)
        numbers, all_words = zip(*(kept[text] for text in sorted(kept)), strict=True)
        assert list(all_words) == sorted(all_words)
        # Of texts with the same words each says so.
        alike = [
            n > 1 for n in map(Counter(map(tuple, all_words)).__getitem__, map(tuple, all_words))
        ]
        assert (order.are_shared(np.array(numbers)) >= alike).all()
        for text in list(kept)[turn % 3 :: 3]:
            del kept[text]
        holder = Holder(number for number, _ in kept.values())
        sweeps.add_holder(holder)
        swept(sweeps)
        assert len(dictionary) == len(kept) + 1
        del holder


def test_no_piece_is_longer_than_it_should_be(dictionary: Dictionary, sweeps: TextSweeps) -> None:
    numbers = dictionary.numbers(texts(5_000))
    holder = Holder(numbers[::2])
    sweeps.add_holder(holder)
    sweeps.piece, sweeps.spare = 200, 0
    n_before, n_pieces = len(dictionary), 0
    while sweeps.is_due:
        sweeps.advance()
        n_pieces += 1
        # A piece frees no more than three entries, each of which costs 64 words.
        assert n_before - len(dictionary) <= 6
        n_before = len(dictionary)
    assert n_pieces > 400
    assert len(dictionary) == 2_501


def test_holders_are_asked_while_they_are_still_and_let_go(
    dictionary: Dictionary, sweeps: TextSweeps
) -> None:
    one, other = Holder(dictionary.numbers([b"one"])), Holder(dictionary.numbers([b"other"]))
    sweeps.add_holder(one)
    sweeps.add_holder(other)
    other.is_at_work = True
    sweeps.advance()
    assert sweeps.stats().refused == "a view is at work"
    assert not one.is_still
    other.is_at_work = False
    sweeps.advance()
    assert sweeps.stats().refused == ""
    assert not one.is_still
    assert not other.is_still
