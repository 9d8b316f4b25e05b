"""Loops that put numbers in order, and over numbers that are.

What each function does, and how, is said by its plain twin, of the same name in `sorting`, `lists`
and `csr`.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

ctypedef const int64_t[::1] Ints

cdef enum:
    DIGIT = 10  # bits by which numbers are sorted in a pass
    AT_ONCE = 1 << 20  # how many are sorted with room for as many
    FEW = 64  # what is sorted by comparing


cdef void sort_few(int64_t *values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, at
    cdef int64_t value
    for i in range(1, n):
        value = values[i]
        at = i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


cdef void sort_at_once(
    int64_t *values, int64_t *room, Py_ssize_t n, uint64_t low, int n_bits
) noexcept nogil:
    """By the last digit first: each pass keeps the order of the one before."""
    cdef int digit, most = 8 if n < 2048 else DIGIT, n_digits = (n_bits + most - 1) // most
    cdef int width = (n_bits + n_digits - 1) // n_digits, shift
    cdef int64_t[7 << DIGIT] places
    cdef int64_t *of_digit
    cdef int64_t *here = values
    cdef int64_t *there = room
    cdef uint64_t key, mask = (<uint64_t>1 << width) - 1
    cdef int64_t size = <int64_t>1 << width, total, count
    cdef Py_ssize_t i
    memset(places, 0, n_digits * size * sizeof(int64_t))
    for i in range(n):
        key = <uint64_t>values[i] - low
        for digit in range(n_digits):
            places[digit * size + <int64_t>(key & mask)] += 1
            key >>= width
    for digit in range(n_digits):
        of_digit, shift, total = &places[digit * size], digit * width, 0
        for i in range(size):
            count, of_digit[i] = of_digit[i], total
            total += count
        for i in range(n):
            key = (<uint64_t>here[i] - low) >> shift & mask
            there[of_digit[key]] = here[i]
            of_digit[key] += 1
        here, there = there, here
    if here != values:
        memcpy(values, here, n * sizeof(int64_t))


cdef void sort_parts(
    int64_t *values, int64_t *room, Py_ssize_t n, uint64_t low, int n_bits
) noexcept nogil:
    """By the first digit in place, and each part by itself: those at once that have room."""
    cdef int64_t[1 << DIGIT] places, ends
    cdef int shift = n_bits - DIGIT if n_bits > DIGIT else 0
    cdef uint64_t digit, other, mask = (1 << DIGIT) - 1
    cdef int64_t total = 0, value
    cdef Py_ssize_t i
    if n_bits == 0:
        return
    if n < FEW:
        sort_few(values, n)
        return
    if n <= AT_ONCE:
        sort_at_once(values, room, n, low, n_bits)
        return
    memset(ends, 0, sizeof(ends))
    for i in range(n):
        ends[(<uint64_t>values[i] - low) >> shift & mask] += 1
    for i in range(1 << DIGIT):
        places[i] = total
        total += ends[i]
        ends[i] = total
    for i in range(1 << DIGIT):
        digit = i
        while places[digit] < ends[digit]:
            value = values[places[digit]]
            other = (<uint64_t>value - low) >> shift & mask
            while other != digit:
                values[places[other]], value = value, values[places[other]]
                places[other] += 1
                other = (<uint64_t>value - low) >> shift & mask
            values[places[digit]] = value
            places[digit] += 1
    total = 0
    for i in range(1 << DIGIT):
        sort_parts(values + total, room, ends[i] - total, low, shift)
        total = ends[i]


def sort_by_digits(int64_t[::1] values):
    cdef Py_ssize_t i, n = values.shape[0]
    cdef int64_t low, high
    cdef bint is_sorted = True
    cdef int n_bits = 0
    if n < 2:
        return
    low = high = values[0]
    with nogil:
        for i in range(1, n):
            is_sorted &= values[i - 1] <= values[i]
            low, high = min(low, values[i]), max(high, values[i])
    if is_sorted:
        return
    while n_bits < 64 and (<uint64_t>high - <uint64_t>low) >> n_bits:
        n_bits += 1
    cdef int64_t[::1] room = np.empty(min(n, <Py_ssize_t>AT_ONCE), np.int64)
    with nogil:
        sort_parts(&values[0], &room[0], n, <uint64_t>low, n_bits)


def distinct_sorted(Ints keys):
    cdef Py_ssize_t i, n_found = 0
    array = np.empty(keys.shape[0], np.int64)
    cdef int64_t[::1] found = array
    with nogil:
        for i in range(keys.shape[0]):
            if i == 0 or keys[i] != keys[i - 1]:
                found[n_found] = keys[i]
                n_found += 1
    return array[:n_found].copy()


def unpack(Ints packed, int64_t n):
    cdef Py_ssize_t i, n_items = 0
    starts_array = np.zeros(n + 1, np.int64)
    array = np.empty(packed.shape[0], np.int32)
    cdef int64_t[::1] starts = starts_array
    cdef int32_t[::1] items = array
    with nogil:
        for i in range(packed.shape[0]):
            if i == 0 or packed[i] != packed[i - 1]:
                items[n_items] = <int32_t>(packed[i] & 0x7FFFFFFF)
                n_items += 1
                starts[(packed[i] >> 32) + 1] += 1
        for i in range(n):
            starts[i + 1] += starts[i]
    return starts_array, array[:n_items]


def split_packed(packed_array, int n_bits, int64_t source_low, int64_t target_low):
    cdef int64_t[::1] packed = packed_array
    cdef Py_ssize_t i, n_values = 0, n_keys = 1, row = -1
    cdef int64_t pair, last = packed[0] - 1, mask = (<int64_t>1 << n_bits) - 1
    with nogil:
        for i in range(1, packed.shape[0]):
            n_keys += (packed[i] >> n_bits) != (packed[i - 1] >> n_bits)
    keys_array = np.empty(n_keys, np.int64)
    starts_array = np.empty(n_keys + 1, np.int64)
    cdef int64_t[::1] keys = keys_array, starts = starts_array
    with nogil:
        for i in range(packed.shape[0]):
            pair = packed[i]
            if pair == last:
                continue
            if row < 0 or (pair >> n_bits) != (last >> n_bits):
                row += 1
                keys[row] = (pair >> n_bits) + source_low
                starts[row] = n_values
            packed[n_values] = (pair & mask) + target_low
            n_values += 1
            last = pair
        starts[n_keys] = n_values
    return keys_array, starts_array, packed_array[:n_values]
