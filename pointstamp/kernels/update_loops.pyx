"""Loops over updates: rows of words, of which the last is the diff.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`consolidation`, `matches` and `group_states`.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil

ctypedef const int64_t[:, ::1] Rows

cdef enum:
    RUN = 12  # so many rows are sorted by insertion
    MOST_BATCHES = 64  # how many batches are read side by side


cdef void insert_sorted(int64_t *rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
    """Sort `n` rows in place; equal ones keep their order."""
    cdef Py_ssize_t i, j, k
    cdef int64_t word
    for i in range(1, n):
        j = i
        while j > 0 and compare(rows + (j - 1) * width, rows + j * width, width - 1) > 0:
            for k in range(width):
                word = rows[j * width + k]
                rows[j * width + k] = rows[(j - 1) * width + k]
                rows[(j - 1) * width + k] = word
            j -= 1


cdef bint sort_rows(
    int64_t *rows, int64_t *spare, Py_ssize_t n, Py_ssize_t width
) noexcept nogil:
    """Sort `n` rows by all words but the last; whether the result is in `spare`."""
    cdef Py_ssize_t i, half = RUN, start, middle, end, left, right
    cdef int64_t *source = rows
    cdef int64_t *target = spare
    cdef int64_t *swapped
    cdef bint is_sorted = True
    for i in range(1, n):
        if compare(rows + (i - 1) * width, rows + i * width, width - 1) > 0:
            is_sorted = False
            break
    if is_sorted:
        return False
    start = 0
    while start < n:
        insert_sorted(rows + start * width, min(half, n - start), width)
        start += half
    while half < n:
        start = 0
        while start < n:
            middle = min(start + half, n)
            end = min(middle + half, n)
            left, right, i = start, middle, start
            if middle == end or compare(
                source + (middle - 1) * width, source + middle * width, width - 1
            ) <= 0:
                memcpy(target + start * width, source + start * width,
                       (end - start) * width * sizeof(int64_t))
            else:
                while left < middle and right < end:
                    if compare(source + left * width, source + right * width, width - 1) <= 0:
                        copy(target + i * width, source + left * width, width)
                        left += 1
                    else:
                        copy(target + i * width, source + right * width, width)
                        right += 1
                    i += 1
                memcpy(target + i * width, source + left * width,
                       (middle - left) * width * sizeof(int64_t))
                i += middle - left
                memcpy(target + i * width, source + right * width,
                       (end - right) * width * sizeof(int64_t))
            start = end
        swapped = source
        source = target
        target = swapped
        half *= 2
    return source != rows


cdef Py_ssize_t sum_sorted(int64_t *rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
    """Make equal neighbours one, of the sum of their diffs, in place; how many are not 0, or -1."""
    cdef Py_ssize_t i = 0, n_kept = 0
    cdef int64_t total
    while i < n:
        copy(rows + n_kept * width, rows + i * width, width)
        total = rows[i * width + width - 1]
        i += 1
        while i < n and compare(rows + n_kept * width, rows + i * width, width - 1) == 0:
            if __builtin_add_overflow(total, rows[i * width + width - 1], &total):
                return -1
            i += 1
        rows[n_kept * width + width - 1] = total
        if total != 0:
            n_kept += 1
    return n_kept


cdef int check_width(Py_ssize_t width, Py_ssize_t other) except -1:
    """Refuse rows without a diff, and such of another form than others."""
    if width < 1 or width != other:
        raise ValueError(f"rows of updates have {width} and {other} words, and need as many, and 1")
    return 0


def consolidate(Rows rows):
    check_width(rows.shape[1], rows.shape[1])
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], n_kept = 0
    array, spare = np.empty((n, width), np.int64), np.empty((n, width), np.int64)
    cdef int64_t[:, ::1] first = array, second = spare
    cdef bint swapped = False
    if n:
        with nogil:
            memcpy(&first[0, 0], &rows[0, 0], n * width * sizeof(int64_t))
            swapped = sort_rows(&first[0, 0], &second[0, 0], n, width)
            n_kept = sum_sorted(&second[0, 0] if swapped else &first[0, 0], n, width)
    if n_kept < 0:
        raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
    return (spare if swapped else array)[:n_kept]


def merge(Rows left, Rows right):
    check_width(left.shape[1], right.shape[1])
    cdef Py_ssize_t n_left = left.shape[0], n_right = right.shape[0], width = left.shape[1]
    cdef Py_ssize_t i = 0, j = 0, n = 0
    cdef int order
    cdef bint overflows = False
    array = np.empty((n_left + n_right, width), np.int64)
    cdef int64_t[:, ::1] rows = array
    with nogil:
        while i < n_left and j < n_right:
            order = compare(&left[i, 0], &right[j, 0], width - 1)
            if order < 0:
                copy(&rows[n, 0], &left[i, 0], width)
                i += 1
                n += 1
            elif order > 0:
                copy(&rows[n, 0], &right[j, 0], width)
                j += 1
                n += 1
            else:
                copy(&rows[n, 0], &left[i, 0], width - 1)
                if __builtin_add_overflow(
                    left[i, width - 1], right[j, width - 1], &rows[n, width - 1]
                ):
                    overflows = True
                    break
                n += rows[n, width - 1] != 0
                i += 1
                j += 1
        if not overflows:
            if i < n_left:
                memcpy(&rows[n, 0], &left[i, 0], (n_left - i) * width * sizeof(int64_t))
            if j < n_right:
                memcpy(&rows[n, 0], &right[j, 0], (n_right - j) * width * sizeof(int64_t))
            n += n_left - i + n_right - j
    if overflows:
        raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
    return array[:n]


def match(Rows changes, Rows batch, int n_key, const int32_t[::1] recipe):
    cdef Py_ssize_t n = changes.shape[0], width = changes.shape[1]
    cdef Py_ssize_t n_batch = batch.shape[0], batch_width = batch.shape[1]
    cdef Py_ssize_t n_words = recipe.shape[0]
    cdef Py_ssize_t i = 0, at = 0, n_runs = 0, total = 0, row = 0, left, right, end, run, k
    cdef bint overflows = False
    runs_array = np.empty((n, 4), np.int64)
    cdef int64_t[:, ::1] runs = runs_array
    if n and n_batch:
        with nogil:
            while i < n:
                end = seek(&changes[0, 0], i, n, width, &changes[i, 0], n_key, True)
                at = seek(&batch[0, 0], at, n_batch, batch_width, &changes[i, 0], n_key, False)
                if at == n_batch:
                    break
                if compare(&batch[at, 0], &changes[i, 0], n_key) == 0:
                    runs[n_runs, 0] = i
                    runs[n_runs, 1] = end
                    runs[n_runs, 2] = at
                    at = seek(&batch[0, 0], at, n_batch, batch_width, &changes[i, 0], n_key, True)
                    runs[n_runs, 3] = at
                    total += (end - i) * (at - runs[n_runs, 2])
                    n_runs += 1
                i = end
    array = np.empty((total, n_words + 1), np.int64)
    cdef int64_t[:, ::1] rows = array
    with nogil:
        for run in range(n_runs):
            for left in range(runs[run, 0], runs[run, 1]):
                for right in range(runs[run, 2], runs[run, 3]):
                    for k in range(n_words):
                        rows[row, k] = (
                            changes[left, recipe[k]] if recipe[k] >= 0 else batch[right, ~recipe[k]]
                        )
                    overflows |= __builtin_mul_overflow(
                        changes[left, width - 1],
                        batch[right, batch_width - 1],
                        &rows[row, n_words],
                    )
                    row += 1
    if overflows:
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    return array


def read_groups(batches, Rows keys, Rows starts, int64_t most):
    cdef Py_ssize_t n_batches = len(batches), n_keys = keys.shape[0], n_key = keys.shape[1]
    cdef Py_ssize_t n_start = starts.shape[1], b, i, width = 0, best, n_rows = 0, capacity
    cdef const int64_t *data[MOST_BATCHES]
    cdef Py_ssize_t size[MOST_BATCHES]
    cdef Py_ssize_t at[MOST_BATCHES]
    cdef Rows view
    cdef int64_t total, found
    cdef const int64_t *row
    if n_batches > MOST_BATCHES:
        raise ValueError(f"{n_batches} batches, where at most {MOST_BATCHES} are read at a time")
    kept = [part for part in batches if len(part)]
    n_batches = len(kept)
    for b in range(n_batches):
        view = kept[b]
        data[b] = &view[0, 0]
        size[b] = view.shape[0]
        width = view.shape[1]
    ends_array = np.zeros(n_keys, np.int64)
    if n_batches == 0:
        return np.empty((0, n_key + n_start + 1), np.int64), ends_array
    cdef int64_t[::1] ends = ends_array
    prefix_array = np.empty(n_key + n_start, np.int64)
    cdef int64_t[::1] prefix = prefix_array
    capacity = 2 * n_keys + 8
    array = np.empty((capacity, width), np.int64)
    cdef int64_t[:, ::1] rows = array
    cdef Py_ssize_t spare
    for i in range(n_keys):
        copy(&prefix[0], &keys[i, 0], n_key)
        if n_start:
            copy(&prefix[n_key], &starts[i, 0], n_start)
        for b in range(n_batches):
            at[b] = seek(data[b], 0, size[b], width, &prefix[0], n_key + n_start, False)
        found = 0
        while found < most:
            if n_rows == capacity:
                capacity *= 2
                grown = np.empty((capacity, width), np.int64)
                grown[:n_rows] = array
                array = grown
                rows = array
            spare = capacity
            with nogil:
                while n_rows < spare and found < most:
                    best = -1
                    for b in range(n_batches):
                        if at[b] < size[b]:
                            row = data[b] + at[b] * width
                            if compare(row, &prefix[0], n_key) == 0 and (
                                best < 0
                                or compare(row, data[best] + at[best] * width, width - 1) < 0
                            ):
                                best = b
                    if best < 0:
                        found = most
                        break
                    copy(&rows[n_rows, 0], data[best] + at[best] * width, width)
                    total = 0
                    for b in range(n_batches):
                        if at[b] < size[b] and compare(
                            data[b] + at[b] * width, &rows[n_rows, 0], width - 1
                        ) == 0:
                            total += data[b][at[b] * width + width - 1]
                            at[b] += 1
                    if total > 0:
                        rows[n_rows, width - 1] = total
                        n_rows += 1
                        found += min(total, most - found)
        ends[i] = n_rows
    return array[:n_rows], ends_array


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    """The finalizer of splitmix64."""
    word += <uint64_t>0x9E3779B97F4A7C15
    word = (word ^ (word >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * <uint64_t>0x94D049BB133111EB
    return word ^ (word >> 31)


cdef inline uint64_t hash_row(const int64_t *row, Py_ssize_t n) noexcept nogil:
    """The hash of `n` words, of which there is one at least."""
    cdef uint64_t hash = mixed(<uint64_t>row[0])
    cdef Py_ssize_t k
    for k in range(1, n):
        hash = mixed(hash * <uint64_t>0xD6E8FEB86659FD93 + mixed(<uint64_t>row[k]))
    return hash


def hash_words(Rows rows, int n_key):
    cdef Py_ssize_t i, n = rows.shape[0]
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] hashes = array
    with nogil:
        for i in range(n):
            hashes[i] = hash_row(&rows[i, 0], n_key)
    return array


def number_groups(int64_t[::1] slots, Py_ssize_t n, int64_t[:, ::1] kept, Rows rows, int32_t[::1] numbers):
    cdef Py_ssize_t i, n_key = kept.shape[1]
    cdef uint64_t slot, mask = slots.shape[0] - 1
    with nogil:
        for i in range(rows.shape[0]):
            slot = hash_row(&rows[i, 0], n_key) & mask
            while slots[slot] != 0 and compare(&kept[slots[slot] - 1, 0], &rows[i, 0], n_key) != 0:
                slot = (slot + 1) & mask
            if slots[slot] == 0:
                copy(&kept[n, 0], &rows[i, 0], n_key)
                n += 1
                slots[slot] = n
            numbers[i] = <int32_t>(slots[slot] - 1)
    return n
