"""Loops over tables by key, and over lists end to end.

What each function does, and of which types, is said by its plain twin, of the same name in
`key_tables`, `group_tables`, `running_folds`, `hash_join`, `lists`, `csr`, `turn` and `sorting`.
"""

from libc.math cimport fmax, fmin
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from pointstamp.kernels.key_searches cimport bits_of, first_slot, row_of, row_or_none

cdef extern from *:
    void __builtin_prefetch(const void *) noexcept nogil
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil

ctypedef const int64_t[::1] Ints
ctypedef const int32_t[::1] Numbers

cdef enum:
    BLOCK = 256  # how many keys are looked up at a time
    WORD = 8  # bytes of a text that no other one of its length has the hash of
    LONG = 255  # bytes, from which on a slot does not say how long a text is
    LEAST = 4  # how many values a list has room for at first


def hash_rows(Ints keys, int n_bits):
    cdef Py_ssize_t row
    cdef int64_t slot, mask = (<int64_t>1 << n_bits) - 1
    array = np.full(1 << n_bits, -1, np.int32)
    cdef int32_t[::1] table = array
    with nogil:
        for row in range(keys.shape[0]):
            slot = first_slot(keys[row], n_bits)
            while table[slot] >= 0:
                slot = (slot + 1) & mask
            table[slot] = <int32_t>row
    return array


def find_numbers(Ints keys, Numbers table, bint dense, Ints ids):
    cdef Py_ssize_t i, n = ids.shape[0]
    cdef int n_bits = bits_of(table.shape[0])
    array = np.empty(n, np.int32)
    cdef int32_t[::1] found = array
    cdef int64_t low = keys[0] if keys.shape[0] else 0, n_slots = table.shape[0]
    cdef uint64_t at
    with nogil:
        if dense:
            for i in range(n):
                at = <uint64_t>ids[i] - <uint64_t>low
                found[i] = table[at] if at < <uint64_t>n_slots else -1
        else:
            for i in range(n):
                found[i] = <int32_t>row_of(keys, table, dense, n_bits, ids[i])
    return array


def find_spans(Ints keys, Ints starts, Numbers table, bint dense, Ints vertices):
    cdef Py_ssize_t i, n = vertices.shape[0]
    cdef int64_t row, low = keys[0] if keys.shape[0] else 0
    cdef int n_bits = bits_of(table.shape[0])
    begins_array = np.empty(n, np.int64)
    ends_array = np.empty(n, np.int64)
    cdef int64_t[::1] begins = begins_array, ends = ends_array
    with nogil:
        # Of none, both are the first start: without a branch that would be guessed wrong.
        for i in range(n):
            row = row_or_none(keys, table, dense, n_bits, low, vertices[i])
            begins[i] = starts[row + (row < 0)]
            ends[i] = starts[row + 1]
    return begins_array, ends_array


def turn_edges(
    Ints keys, Numbers table, bint dense, Ints degrees, Ints sources, Ints targets
):
    cdef Py_ssize_t i, n = sources.shape[0]
    cdef int n_bits = bits_of(table.shape[0])
    cdef int64_t low = keys[0] if keys.shape[0] else 0
    cdef int64_t source, target, ours, theirs, changed
    lower_array, higher_array = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] lower = lower_array, higher = higher_array
    with nogil:
        # Without branches that the processor would guess wrong.
        for i in range(n):
            source = sources[i]
            target = targets[i]
            ours = degrees[row_or_none(keys, table, dense, n_bits, low, source) + 1]
            theirs = degrees[row_or_none(keys, table, dense, n_bits, low, target) + 1]
            changed = (source ^ target) & -<int64_t>(
                (theirs < ours) | ((theirs == ours) & (target < source))
            )
            lower[i] = source ^ changed
            higher[i] = target ^ changed
    return lower_array, higher_array


def refill(const int64_t[:, ::1] slots, int64_t[:, ::1] larger):
    cdef Py_ssize_t i, k
    cdef int64_t slot, mask = larger.shape[0] - 1
    cdef int n_bits = bits_of(larger.shape[0])
    with nogil:
        for i in range(slots.shape[0]):
            if slots[i, 1] != 0:
                slot = first_slot(slots[i, 0], n_bits)
                while larger[slot, 1] != 0:
                    slot = (slot + 1) & mask
                for k in range(slots.shape[1]):
                    larger[slot, k] = slots[i, k]


cdef inline int64_t slot_from(
    const int64_t[:, ::1] slots, int64_t slot, int64_t key
) noexcept nogil:
    """The end of a search that has come to `slot`."""
    while slots[slot, 1] != 0 and slots[slot, 0] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


cdef inline int64_t slot_of(const int64_t[:, ::1] slots, int n_bits, int64_t key) noexcept nogil:
    """The slot that has `key`, or the empty one that it belongs in; `n_bits` of the slots."""
    return slot_from(slots, first_slot(key, n_bits), key)


cdef inline void prefetch(
    const int64_t[:, ::1] slots, int n_bits, Ints keys, Py_ssize_t start, Py_ssize_t stop
) noexcept nogil:
    """Have the first slots of `keys[start:stop]` brought near."""
    cdef Py_ssize_t i
    for i in range(start, stop):
        __builtin_prefetch(&slots[first_slot(keys[i], n_bits), 0])


ctypedef fused Value:
    int32_t
    int64_t


cdef inline int64_t begin_of(int64_t place) noexcept nogil:
    """Where the rest begins, of what a slot says of its values."""
    return <int64_t>((<uint64_t>place >> 32) * LEAST)


cdef inline int64_t size_of(int64_t place) noexcept nogil:
    return place & <int64_t>0xFFFFFFFF


cdef Py_ssize_t insert_over(
    int64_t[:, ::1] slots,
    Value[:, ::1] words,
    int64_t[::1] used,
    Value[::1] lists,
    Ints keys,
    Ints values,
    Py_ssize_t done,
) noexcept nogil:
    """Add from `done` on, as far as there is room; `used` is of slots and of lists."""
    cdef Py_ssize_t start, stop = done, i, k
    cdef int64_t slot, size, rest, begin, room
    cdef int64_t at[BLOCK]
    cdef int n_bits = bits_of(slots.shape[0])
    cdef int n_inside = 16 // sizeof(Value)  # as many are in the slot, from that column on
    while stop < keys.shape[0]:
        start = stop
        stop = min(start + BLOCK, keys.shape[0])
        prefetch(slots, n_bits, keys, start, stop)
        for i in range(start, stop):
            slot = slot_of(slots, n_bits, keys[i])
            at[i - start] = slot
            size = size_of(slots[slot, 1])
            if size > n_inside:
                __builtin_prefetch(&lists[begin_of(slots[slot, 1]) + size - n_inside - 1])
        for i in range(start, stop):
            if <Value>values[i] != values[i]:  # too large for a list of small ones
                return i
            # Another key of this block may have got the slot that was empty.
            slot = slot_from(slots, at[i - start], keys[i])
            size = size_of(slots[slot, 1])
            begin = begin_of(slots[slot, 1])
            if size < n_inside:
                used[0] += size == 0
                slots[slot, 0] = keys[i]
                words[slot, n_inside + size] = <Value>values[i]
                slots[slot, 1] = size + 1
                continue
            rest = size - n_inside
            if rest == 0 or (rest >= LEAST and rest & (rest - 1) == 0):  # no room for more
                room = max(2 * rest, <int64_t>LEAST)
                if used[1] + room > lists.shape[0]:
                    return i
                for k in range(rest):
                    lists[used[1] + k] = lists[begin + k]
                begin = used[1]
                used[1] += room
            lists[begin + rest] = <Value>values[i]
            slots[slot, 1] = <int64_t>((<uint64_t>(begin // LEAST) << 32) | <uint64_t>(size + 1))
    return keys.shape[0]


def insert_values(
    int64_t[:, ::1] slots, int64_t n, lists, int64_t n_used, Ints keys, Ints values, Py_ssize_t done
):
    cdef int64_t[::1] used = np.array([n, n_used])
    words = np.asarray(slots).view(lists.dtype)
    if lists.itemsize == 4:
        done = insert_narrow(slots, words, used, lists, keys, values, done)
    else:
        done = insert_wide(slots, words, used, lists, keys, values, done)
    return used[0], used[1], done


cdef insert_narrow(
    int64_t[:, ::1] slots,
    int32_t[:, ::1] words,
    int64_t[::1] used,
    int32_t[::1] lists,
    Ints keys,
    Ints values,
    Py_ssize_t done,
):
    with nogil:
        done = insert_over[int32_t](slots, words, used, lists, keys, values, done)
    return done


cdef insert_wide(
    int64_t[:, ::1] slots,
    int64_t[:, ::1] words,
    int64_t[::1] used,
    int64_t[::1] lists,
    Ints keys,
    Ints values,
    Py_ssize_t done,
):
    with nogil:
        done = insert_over[int64_t](slots, words, used, lists, keys, values, done)
    return done


cdef void copy_over(
    const int64_t[:, ::1] found,
    const Value[:, ::1] words,
    const Value[::1] lists,
    int32_t[::1] records,
    Value[::1] values,
) noexcept nogil:
    """The values of what was found, and of which record each is."""
    cdef Py_ssize_t start, stop = 0, i, k
    cdef int64_t size, begin, at = 0, n_found = records.shape[0]
    cdef int n_inside = 16 // sizeof(Value)
    while stop < found.shape[0]:
        start = stop
        stop = min(start + BLOCK, found.shape[0])
        for i in range(start, stop):
            if size_of(found[i, 1]) > n_inside:
                __builtin_prefetch(&lists[begin_of(found[i, 1])])
        for i in range(start, stop):
            size = size_of(found[i, 1])
            if at + n_inside <= n_found:
                # Also those that are not there, which the next ones overwrite: no loop that
                # ends now here, now there.
                for k in range(n_inside):
                    records[at + k] = <int32_t>i
                    values[at + k] = words[i, n_inside + k]
            else:
                for k in range(min(size, <int64_t>n_inside)):
                    records[at + k] = <int32_t>i
                    values[at + k] = words[i, n_inside + k]
            if size > n_inside:
                begin = begin_of(found[i, 1])
                for k in range(size - n_inside):
                    records[at + n_inside + k] = <int32_t>i
                    values[at + n_inside + k] = lists[begin + k]
            at += size


def values_of(const int64_t[:, ::1] slots, int64_t n, lists, int64_t n_used, Ints keys):
    cdef Py_ssize_t start, stop = 0, i, n_keys = keys.shape[0]
    cdef int64_t slot, n_found = 0
    cdef int n_bits = bits_of(slots.shape[0])
    found_array = np.empty((n_keys, 4), np.int64)  # what the slots hold
    cdef int64_t[:, ::1] found = found_array
    with nogil:
        while stop < n_keys:
            start = stop
            stop = min(start + BLOCK, n_keys)
            prefetch(slots, n_bits, keys, start, stop)
            for i in range(start, stop):
                slot = slot_of(slots, n_bits, keys[i])
                memcpy(&found[i, 0], &slots[slot, 0], 32)
                n_found += size_of(slots[slot, 1])
    records = np.empty(n_found, np.int32)
    values = np.empty(n_found, lists.dtype)
    words = found_array.view(lists.dtype)
    if lists.itemsize == 4:
        copy_narrow(found, words, lists, records, values)
    else:
        copy_wide(found, words, lists, records, values)
    return records, values


cdef copy_narrow(
    const int64_t[:, ::1] found,
    const int32_t[:, ::1] words,
    Numbers lists,
    int32_t[::1] records,
    int32_t[::1] values,
):
    with nogil:
        copy_over[int32_t](found, words, lists, records, values)


cdef copy_wide(
    const int64_t[:, ::1] found,
    const int64_t[:, ::1] words,
    Ints lists,
    int32_t[::1] records,
    int64_t[::1] values,
):
    with nogil:
        copy_over[int64_t](found, words, lists, records, values)


def number_keys(
    int64_t[:, ::1] slots, int64_t n, int64_t[::1] distinct, Ints keys, int32_t[::1] groups
):
    cdef Py_ssize_t start, stop, i
    cdef int64_t slot
    cdef int n_bits = bits_of(slots.shape[0])
    with nogil:
        stop = 0
        while stop < keys.shape[0]:
            start = stop
            stop = min(start + BLOCK, keys.shape[0])
            prefetch(slots, n_bits, keys, start, stop)
            for i in range(start, stop):
                slot = slot_of(slots, n_bits, keys[i])
                if slots[slot, 1] == 0:
                    distinct[n] = keys[i]
                    n += 1
                    slots[slot, 0] = keys[i]
                    slots[slot, 1] = n
                groups[i] = <int32_t>(slots[slot, 1] - 1)
    return n


def number_texts(
    int64_t[:, ::1] slots,
    int64_t n,
    int64_t[::1] ends,
    uint8_t[::1] kept,
    Ints hashes,
    Ints bounds,
    const uint8_t[::1] data,
    int32_t[::1] groups,
):
    cdef Py_ssize_t start, stop, i, k, n_far, n_others
    cdef int64_t slot, number, size, entry, length
    cdef int64_t[BLOCK] far, others
    cdef bint found
    cdef int n_bits = bits_of(slots.shape[0])
    cdef const uint8_t *texts = &data[0] if data.shape[0] else NULL
    with nogil:
        stop = 0
        while stop < hashes.shape[0]:
            start = stop
            stop = min(start + BLOCK, hashes.shape[0])
            prefetch(slots, n_bits, hashes, start, stop)
            n_far = 0  # without branches by length, which are guessed wrong
            for i in range(start, stop):
                size = bounds[i + 1] - bounds[i]
                entry = slots[slot_of(slots, n_bits, hashes[i]), 1]
                number = number_in(entry)
                found = (number != 0) & (entry - number == length_of(size))
                groups[i] = <int32_t>(number * found - 1)
                far[n_far] = i
                n_far += found & (size > WORD)
                __builtin_prefetch(&ends[number])
            for k in range(n_far):
                __builtin_prefetch(&kept[ends[groups[far[k]]]])
            for k in range(n_far):
                i = far[k]
                if not is_text(ends, kept, groups[i], texts + bounds[i], bounds[i + 1] - bounds[i]):
                    groups[i] = -1
            n_others = 0
            for i in range(start, stop):
                others[n_others] = i
                n_others += groups[i] < 0
            for k in range(n_others):
                i = others[k]
                size = bounds[i + 1] - bounds[i]
                slot = first_slot(hashes[i], n_bits)
                while slots[slot, 1] != 0:
                    number = number_in(slots[slot, 1])
                    if slots[slot, 0] == hashes[i] and is_text(
                        ends, kept, number - 1, texts + bounds[i], size
                    ):
                        break
                    slot = (slot + 1) & (slots.shape[0] - 1)
                else:
                    if size:
                        memcpy(&kept[ends[n]], texts + bounds[i], size)
                    ends[n + 1] = ends[n] + size
                    n += 1
                    number = n
                    slots[slot, 0] = hashes[i]
                    slots[slot, 1] = number | length_of(size)
                groups[i] = <int32_t>(number - 1)
    return n


cdef inline bint is_text(
    Ints ends, const uint8_t[::1] kept, int64_t group, const uint8_t *text, int64_t size
) noexcept nogil:
    """Whether that is the text of the group."""
    return ends[group + 1] - ends[group] == size and (
        size == 0 or are_same(&kept[ends[group]], text, size)
    )


cdef inline int64_t length_of(int64_t size) noexcept nogil:
    """The length of a text as a slot has it: above its number."""
    return min(size, <int64_t>LONG) << 32


cdef inline int64_t number_in(int64_t entry) noexcept nogil:
    """The number of a text, of what a slot has beside its hash; above it is the length."""
    return entry & <int64_t>0xFFFFFFFF


cdef inline bint are_same(const uint8_t *a, const uint8_t *b, int64_t size) noexcept nogil:
    """Whether `size` bytes are the same; most keys are short, for which a call takes longer."""
    cdef uint64_t first, second
    if size > 16 or size < 4:
        return memcmp(a, b, size) == 0
    if size < 8:
        return word_4(a) == word_4(b) and word_4(a + size - 4) == word_4(b + size - 4)
    memcpy(&first, a, 8)
    memcpy(&second, b, 8)
    if first != second:
        return False
    memcpy(&first, a + size - 8, 8)
    memcpy(&second, b + size - 8, 8)
    return first == second


cdef inline uint32_t word_4(const uint8_t *at) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, at, 4)
    return word


cdef inline void prefetch_totals(Numbers groups, const void *totals, Py_ssize_t start) noexcept nogil:
    """Have the totals of a block of records brought near."""
    cdef Py_ssize_t i
    for i in range(start, min(start + BLOCK, groups.shape[0])):
        __builtin_prefetch(<const char *>totals + 8 * <Py_ssize_t>groups[i])


def add_ints(Numbers groups, Ints values, int64_t[::1] totals):
    cdef Py_ssize_t i, start = 0
    with nogil:
        while start < groups.shape[0]:
            prefetch_totals(groups, &totals[0], start)
            for i in range(start, min(start + BLOCK, groups.shape[0])):
                # Without a sign: there, what goes beyond wraps around.
                totals[groups[i]] = <int64_t>(<uint64_t>totals[groups[i]] + <uint64_t>values[i])
            start += BLOCK


def add_floats(Numbers groups, const double[::1] values, double[::1] totals):
    cdef Py_ssize_t i, start = 0
    with nogil:
        while start < groups.shape[0]:
            prefetch_totals(groups, &totals[0], start)
            for i in range(start, min(start + BLOCK, groups.shape[0])):
                totals[groups[i]] += values[i]
            start += BLOCK


def lower_ints(Numbers groups, Ints values, int64_t[::1] totals):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = min(totals[groups[i]], values[i])


def raise_ints(Numbers groups, Ints values, int64_t[::1] totals):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = max(totals[groups[i]], values[i])


def count_so_far(Numbers groups, int64_t[::1] totals, int64_t[::1] found):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] += 1
            found[i] = totals[groups[i]]


def add_ints_so_far(Numbers groups, Ints values, int64_t[::1] totals, int64_t[::1] found):
    cdef Py_ssize_t i, wrong = -1
    with nogil:
        for i in range(groups.shape[0]):
            if __builtin_add_overflow(totals[groups[i]], values[i], &found[i]):
                wrong = i
                break
            totals[groups[i]] = found[i]
    return wrong


def add_floats_so_far(
    Numbers groups, const double[::1] values, double[::1] totals, double[::1] found
):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] += values[i]
            found[i] = totals[groups[i]]


def lower_ints_so_far(Numbers groups, Ints values, int64_t[::1] totals, int64_t[::1] found):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = found[i] = min(totals[groups[i]], values[i])


def raise_ints_so_far(Numbers groups, Ints values, int64_t[::1] totals, int64_t[::1] found):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = found[i] = max(totals[groups[i]], values[i])


def lower_floats_so_far(
    Numbers groups, const double[::1] values, double[::1] totals, double[::1] found
):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = found[i] = fmin(totals[groups[i]], values[i])


def raise_floats_so_far(
    Numbers groups, const double[::1] values, double[::1] totals, double[::1] found
):
    cdef Py_ssize_t i
    with nogil:
        for i in range(groups.shape[0]):
            totals[groups[i]] = found[i] = fmax(totals[groups[i]], values[i])


def flag(Ints ids, int64_t low, uint8_t[::1] present):
    cdef Py_ssize_t i
    with nogil:
        for i in range(ids.shape[0]):
            present[ids[i] - low] = True


def copy_lists(
    const int64_t[::1] items, const int64_t[::1] starts, const int64_t[::1] places, int64_t[::1] copied
):
    cdef Py_ssize_t i
    cdef int64_t n
    with nogil:
        for i in range(places.shape[0]):
            n = starts[i + 1] - starts[i]
            if n:
                memcpy(&copied[places[i]], &items[starts[i]], n * sizeof(int64_t))


def tally_into(Numbers numbers, int64_t[::1] counts):
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            counts[numbers[i]] += 1


ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void place_over(
    Numbers numbers, const Word[::1] items, int64_t[::1] places, Word[::1] grouped
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t place
    for i in range(items.shape[0]):
        place = places[numbers[i]]
        grouped[place] = items[i]
        places[numbers[i]] = place + 1


def place_words(Numbers numbers, items, int64_t[::1] places, grouped):
    cdef int width = items.itemsize
    if width == 8:
        place_8(numbers, items, places, grouped)
    elif width == 4:
        place_4(numbers, items, places, grouped)
    elif width == 2:
        place_2(numbers, items, places, grouped)
    else:
        place_1(numbers, items, places, grouped)


cdef place_1(Numbers numbers, const uint8_t[::1] items, int64_t[::1] places, uint8_t[::1] grouped):
    with nogil:
        place_over[uint8_t](numbers, items, places, grouped)


cdef place_2(
    Numbers numbers, const uint16_t[::1] items, int64_t[::1] places, uint16_t[::1] grouped
):
    with nogil:
        place_over[uint16_t](numbers, items, places, grouped)


cdef place_4(
    Numbers numbers, const uint32_t[::1] items, int64_t[::1] places, uint32_t[::1] grouped
):
    with nogil:
        place_over[uint32_t](numbers, items, places, grouped)


cdef place_8(
    Numbers numbers, const uint64_t[::1] items, int64_t[::1] places, uint64_t[::1] grouped
):
    with nogil:
        place_over[uint64_t](numbers, items, places, grouped)


def count_buckets(Ints ids, int64_t low, int shift, int64_t[::1] counts):
    cdef Py_ssize_t i
    with nogil:
        for i in range(ids.shape[0]):
            counts[(ids[i] - low) >> shift] += 1


def pack_by_bucket(
    Ints first,
    int64_t first_low,
    Ints second,
    int64_t second_low,
    int shift,
    int64_t[::1] places,
    int64_t[::1] packed,
):
    cdef Py_ssize_t i
    cdef int64_t number, place
    with nogil:
        for i in range(first.shape[0]):
            number = first[i] - first_low
            place = places[number >> shift]
            packed[place] = number << 32 | (second[i] - second_low)
            places[number >> shift] = place + 1
