"""Sorting of rows of updates, and of two that are next to each other which is first."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from pointstamp.kernels.update_loops cimport compare, copy

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil

cdef enum:
    RUN = 12  # so many rows are sorted by insertion, and then merged
    FEW = 32  # so many are sorted by insertion alone
    SPREADS = 3  # so often rows are spread by their words, before they are sorted by merging
    MOST_SPREAD = 1 << 30  # of so many the places have no 32-bit numbers


cdef inline const int64_t *either(
    const int64_t *one, const int64_t *other, Py_ssize_t is_one
) noexcept nogil:
    """One row if `is_one` is 1, the other one if it is 0: without a branch, as it is a guess."""
    return <const int64_t *>(
        <size_t>other ^ ((<size_t>one ^ <size_t>other) & (0 - <size_t>is_one))
    )


cdef inline void insert_sorted(int64_t *rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
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


cdef inline bint sort_by_merging(
    int64_t *rows, int64_t *spare, Py_ssize_t n, Py_ssize_t width
) noexcept nogil:
    """What `sort_rows` does, however the words are spread."""
    cdef Py_ssize_t i, half = RUN, start, middle, end, left, right, is_left
    cdef int64_t *source = rows
    cdef int64_t *target = spare
    cdef const int64_t *one
    cdef const int64_t *other
    cdef int64_t *swapped
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
                    one, other = source + left * width, source + right * width
                    # As in `merge_rows`: no branch.
                    is_left = one[0] <= other[0] if width > 1 and one[0] != other[0] else (
                        compare(one, other, width - 1) <= 0
                    )
                    copy(target + i * width, either(one, other, is_left), width)
                    left += is_left
                    right += 1 - is_left
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


cdef inline Py_ssize_t spread_to(int64_t word, int64_t least, double by_word) noexcept nogil:
    """The place of a word, if words are spread evenly; of a larger one it is not less."""
    return <Py_ssize_t>(<double>(<uint64_t>word - <uint64_t>least) * by_word)


cdef inline bint sort_by_spreading(
    int64_t *rows, int64_t *spare, Py_ssize_t n, Py_ssize_t width, int n_spreads
) noexcept nogil:
    """What `sort_rows` does: by where each row would be if words were spread evenly.

    What comes to one place is sorted by itself, in the same way up to `n_spreads` times.

    Source: E. Isaac and R. Singleton, Sorting by address calculation, 1956.
    """
    cdef Py_ssize_t i, k, to, begin, size, n_places = n // 2
    cdef int64_t least = 0, most = 0
    cdef double by_word
    cdef uint32_t *ends
    if n <= FEW:
        insert_sorted(rows, n, width)
        return False
    for k in range(width - 1):
        least = most = rows[k]
        for i in range(1, n):
            least = min(least, rows[i * width + k])
            most = max(most, rows[i * width + k])
        if least < most:
            break
    ends = NULL
    if least < most and n_spreads and n < MOST_SPREAD:
        ends = <uint32_t *>calloc(n_places + 1, sizeof(uint32_t))
    if ends == NULL:
        return sort_by_merging(rows, spare, n, width)
    by_word = <double>(n_places - 1) / <double>(<uint64_t>most - <uint64_t>least)
    for i in range(n):
        ends[spread_to(rows[i * width + k], least, by_word) + 1] += 1
    for i in range(n_places):
        ends[i + 1] += ends[i]
    for i in range(n):
        to = spread_to(rows[i * width + k], least, by_word)
        copy(spare + ends[to] * width, rows + i * width, width)
        ends[to] += 1
    begin = 0
    for i in range(n_places):
        size = ends[i] - begin
        if size > FEW:
            if sort_by_spreading(
                spare + begin * width, rows + begin * width, size, width, n_spreads - 1
            ):
                memcpy(spare + begin * width, rows + begin * width, size * width * sizeof(int64_t))
        elif size > 1:
            insert_sorted(spare + begin * width, size, width)
        begin = ends[i]
    free(ends)
    return True


cdef inline bint sort_rows(
    int64_t *rows, int64_t *spare, Py_ssize_t n, Py_ssize_t width
) noexcept nogil:
    """Sort `n` rows by all words but the last; whether the result is in `spare`."""
    cdef Py_ssize_t i
    for i in range(1, n):
        if compare(rows + (i - 1) * width, rows + i * width, width - 1) > 0:
            return sort_by_spreading(rows, spare, n, width, SPREADS)
    return False


cdef inline Py_ssize_t sum_sorted(int64_t *rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
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
