"""Loops over updates that keep their times.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`histories`.
"""

from libc.stdint cimport int64_t

import numpy as np

from pointstamp.kernels.update_loops cimport compare, copy, seek

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil

ctypedef const int64_t[:, ::1] Rows

cdef enum:
    MOST_BATCHES = 64  # how many batches are read side by side


cdef class Buffer:
    """Rows that become more: those of `array` up to `n`."""

    cdef object array
    cdef int64_t[:, ::1] rows
    cdef Py_ssize_t n, capacity, width

    def __cinit__(self, Py_ssize_t capacity, Py_ssize_t width):
        self.array = np.empty((capacity, width), np.int64)
        self.rows = self.array
        self.n, self.capacity, self.width = 0, capacity, width

    cdef int64_t *next(self) except NULL:
        """Where the next row is to be written."""
        if self.n == self.capacity:
            self.capacity *= 2
            array = np.empty((self.capacity, self.width), np.int64)
            array[: self.n] = self.array
            self.array = array
            self.rows = array
        self.n += 1
        return &self.rows[self.n - 1, 0]


cdef bint is_before(const int64_t *one, const int64_t *other, Py_ssize_t depth) noexcept nogil:
    """Whether a time is at or before another, in each coordinate."""
    cdef Py_ssize_t k
    for k in range(depth):
        if one[k] > other[k]:
            return False
    return True


def read_history(batches, times, Rows keys, const int64_t[::1] time, Py_ssize_t n_words):
    cdef Py_ssize_t n_batches = len(batches), n_keys = keys.shape[0], n_key = keys.shape[1] - 1
    cdef Py_ssize_t depth = time.shape[0], b, i, k, best, first_join, j
    cdef const int64_t *data[MOST_BATCHES]
    cdef const int64_t *fixed[MOST_BATCHES]
    cdef Py_ssize_t size[MOST_BATCHES]
    cdef Py_ssize_t width[MOST_BATCHES]
    cdef Py_ssize_t begin[MOST_BATCHES]
    cdef Py_ssize_t at[MOST_BATCHES]
    cdef Py_ssize_t end[MOST_BATCHES]
    cdef Rows view
    cdef const int64_t[:, ::1] times_view = times
    cdef const int64_t *row
    cdef const int64_t *its_time
    cdef int64_t *into
    cdef int64_t *join
    cdef int64_t total
    cdef bint is_known, is_there
    if n_batches > MOST_BATCHES:
        raise ValueError(f"{n_batches} batches, where at most {MOST_BATCHES} are read at a time")
    for b in range(n_batches):
        view = batches[b]
        size[b], width[b], begin[b] = view.shape[0], view.shape[1], 0
        data[b] = &view[0, 0] if size[b] else NULL
        # Those of one time say it beside, the others in each row.
        fixed[b] = &times_view[b, 0] if width[b] == n_words + 1 else NULL
    cdef Buffer found = Buffer(2 * n_keys + 8, n_words + 1)
    cdef Buffer joins = Buffer(8, depth + n_key + 1)
    for i in range(n_keys):
        is_there = False
        for b in range(n_batches):
            at[b] = seek(data[b], begin[b], size[b], width[b], &keys[i, 0], n_key, False)
            begin[b] = at[b]
            is_there |= at[b] < size[b]
        if not is_there:
            continue
        first_join = joins.n
        while True:
            best = -1
            for b in range(n_batches):
                if at[b] < size[b]:
                    row = data[b] + at[b] * width[b]
                    if compare(row, &keys[i, 0], n_key) == 0 and (
                        best < 0 or compare(row, data[best] + at[best] * width[best], n_words) < 0
                    ):
                        best = b
            if best < 0:
                break
            into = found.next()
            copy(into, data[best] + at[best] * width[best], n_words)
            total = 0
            for b in range(n_batches):
                while at[b] < size[b]:
                    row = data[b] + at[b] * width[b]
                    if compare(row, into, n_words) != 0:
                        break
                    its_time = row + n_words if fixed[b] == NULL else fixed[b]
                    if is_before(its_time, &time[0], depth):
                        total += row[width[b] - 1]
                    else:
                        join = joins.next()
                        for k in range(depth):
                            join[k] = max(its_time[k], time[k])
                        copy(join + depth, &keys[i, 0], n_key)
                        join[depth + n_key] = 1
                        # Most are those of the rows before.
                        for j in range(max(first_join, joins.n - 9), joins.n - 1):
                            if compare(&joins.rows[j, 0], join, depth) == 0:
                                joins.n -= 1
                                break
                    at[b] += 1
            into[n_words] = total
            if total == 0:
                found.n -= 1
    return found.array[: found.n], joins.array[: joins.n]


def advance_times(Rows rows, const int64_t[:, ::1] frontier):
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], depth = frontier.shape[1]
    cdef Py_ssize_t n_frontier = frontier.shape[0], n_words = width - depth - 1
    cdef Py_ssize_t i = 0, start, kept = 0, j, k, f
    cdef int64_t word, other
    cdef bint overflows = False
    array = np.empty((n, width), np.int64)
    cdef int64_t[:, ::1] found = array
    cdef int64_t *row
    with nogil:
        while i < n:
            # Records stay in order; the times of one record are put in order as they come.
            start = kept
            while i < n and (
                kept == start or compare(&found[start, 0], &rows[i, 0], n_words) == 0
            ):
                row = &found[kept, 0]
                copy(row, &rows[i, 0], width)
                for k in range(n_words, n_words + depth):
                    word = max(row[k], frontier[0, k - n_words])
                    for f in range(1, n_frontier):
                        other = max(row[k], frontier[f, k - n_words])
                        if other < word:
                            word = other
                    row[k] = word
                i += 1
                j = kept
                while j > start and compare(&found[j - 1, n_words], &found[j, n_words], depth) > 0:
                    for k in range(n_words, width):
                        word = found[j, k]
                        found[j, k] = found[j - 1, k]
                        found[j - 1, k] = word
                    j -= 1
                if j > start and compare(&found[j - 1, n_words], &found[j, n_words], depth) == 0:
                    if __builtin_add_overflow(
                        found[j - 1, width - 1], found[j, width - 1], &found[j - 1, width - 1]
                    ):
                        overflows = True
                        break
                    for f in range(j, kept):
                        copy(&found[f, 0], &found[f + 1, 0], width)
                    kept -= 1
                kept += 1
            if overflows:
                break
            # What has cancelled goes, now that no more of the record comes.
            f = start
            for j in range(start, kept):
                if found[j, width - 1] != 0:
                    if f != j:
                        copy(&found[f, 0], &found[j, 0], width)
                    f += 1
            kept = f
    if overflows:
        raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
    return array[:kept]
