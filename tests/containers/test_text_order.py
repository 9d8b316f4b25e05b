"""Words of texts have the order of their bytes, or say that they are shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.dictionary import Dictionary
from pointstamp.containers.text_order import TextOrder

texts = st.builds(
    lambda beginning, end: beginning + end,
    st.sampled_from(
        [b"", b"a", b"fifteen bytes, ", b"fifteen bytes- ", b"fifteen bytes, and more"]
    ),
    st.binary(max_size=3),
)


@given(st.lists(st.lists(texts, max_size=12), max_size=12), st.sampled_from([1, 5, 100, 1 << 62]))
def test_words_are_in_the_order_of_bytes_or_shared(epochs: list[list[bytes]], most: int) -> None:
    dictionary = Dictionary()
    order = TextOrder(dictionary, most)
    kept: dict[bytes, list[int]] = {}
    for epoch in epochs:
        numbers = np.array(dictionary.numbers(epoch), np.int64)
        for text, words in zip(epoch, order.words(numbers).tolist(), strict=True):
            assert kept.setdefault(text, words) == words
    in_order = sorted(kept)
    shared = order.are_shared(np.array(dictionary.numbers(in_order), np.int64)).tolist()
    for at in range(len(in_order) - 1):
        one, other = kept[in_order[at]], kept[in_order[at + 1]]
        assert one < other or (one == other and shared[at] and shared[at + 1])
    if most > 100:
        assert not any(shared)


@pytest.mark.parametrize("way", ["up", "down", "at random", "up and down"])
def test_texts_that_come_one_by_one_have_labels_of_their_own_but_for_a_few(way: str) -> None:
    n = 3_000
    places = list(range(n))
    if way == "down":
        places.reverse()
    if way == "at random":
        places = np.random.default_rng(5).permutation(n).tolist()
    if way == "up and down":
        places = [n // 2 + at // 2 if at % 2 else n // 2 - at // 2 for at in range(n)]
    dictionary = Dictionary()
    order = TextOrder(dictionary)
    order.words(np.array(dictionary.numbers([b"https://an.example/", b"https://an.example/z"])))
    numbers = [dictionary.number(b"https://an.example/%07d" % place) for place in places]
    words = [order.words(np.array([number])).tolist()[0] for number in numbers]
    assert order.are_shared(np.array(numbers)).sum() < n // 100
    by_place = [word for _, word in sorted(zip(places, words, strict=True))]
    assert by_place == sorted(by_place)


@pytest.mark.parametrize("way", ["behind", "before", "between", "at random"])
def test_many_texts_that_come_together_leave_room_for_as_many_again(way: str) -> None:
    n_loads, n = 20, 5_000
    loads = list(range(n_loads))
    if way == "before":
        loads.reverse()
    if way == "between":
        loads = [at // 2 if at % 2 else n_loads - 1 - at // 2 for at in range(n_loads)]
    if way == "at random":
        loads = np.random.default_rng(5).permutation(n_loads).tolist()
    dictionary = Dictionary()
    order = TextOrder(dictionary)
    for load in loads:
        texts = [b"https://an.example/%02d/%07d" % (load, place) for place in range(n)]
        numbers = np.array(dictionary.numbers(texts))
        order.words(numbers)
        assert not order.are_shared(numbers).any()
