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


cdef class Histories:
    """Batches that are read side by side, group by group.

    fixed : the time of a batch, where its rows have none of their own
    begin : where in a batch the next group is looked for
    """

    cdef const int64_t *data[MOST_BATCHES]
    cdef const int64_t *fixed[MOST_BATCHES]
    cdef Py_ssize_t size[MOST_BATCHES]
    cdef Py_ssize_t width[MOST_BATCHES]
    cdef Py_ssize_t begin[MOST_BATCHES]
    cdef Py_ssize_t n_batches, n_words, depth
    cdef const int64_t[:, ::1] times
    cdef list views

    def __cinit__(self, batches, times, Py_ssize_t n_words):
        cdef Py_ssize_t b
        cdef Rows view
        self.n_batches, self.n_words = len(batches), n_words
        if self.n_batches > MOST_BATCHES:
            raise ValueError(
                f"{self.n_batches} batches, where at most {MOST_BATCHES} are read at a time"
            )
        self.times = times
        self.depth = self.times.shape[1]
        self.views = batches if isinstance(batches, list) else list(batches)
        for b in range(self.n_batches):
            view = self.views[b]
            self.size[b], self.width[b], self.begin[b] = view.shape[0], view.shape[1], 0
            self.data[b] = &view[0, 0] if self.size[b] else NULL
            self.fixed[b] = &self.times[b, 0] if self.width[b] == n_words + 1 else NULL

    cdef int read(
        self,
        const int64_t *key,
        Py_ssize_t n_key,
        const int64_t *time,
        Buffer found,
        Buffer joins,
    ) except -1:
        """Append what a group has as of a time, and the joins of its other times with it.

        Groups are to be asked for in order.
        """
        cdef Py_ssize_t at[MOST_BATCHES]
        cdef Py_ssize_t b, best, k, j, first_join = joins.n
        cdef const int64_t *row
        cdef const int64_t *its_time
        cdef int64_t *into
        cdef int64_t *join
        cdef int64_t total
        cdef bint is_there = False
        for b in range(self.n_batches):
            at[b] = seek(
                self.data[b], self.begin[b], self.size[b], self.width[b], key, n_key, False
            )
            self.begin[b] = at[b]
            is_there |= at[b] < self.size[b]
        if not is_there:
            return 0
        while True:
            best = -1
            for b in range(self.n_batches):
                if at[b] < self.size[b]:
                    row = self.data[b] + at[b] * self.width[b]
                    if compare(row, key, n_key) == 0 and (
                        best < 0
                        or compare(
                            row, self.data[best] + at[best] * self.width[best], self.n_words
                        )
                        < 0
                    ):
                        best = b
            if best < 0:
                return 0
            into = found.next()
            copy(into, self.data[best] + at[best] * self.width[best], self.n_words)
            total = 0
            for b in range(self.n_batches):
                while at[b] < self.size[b]:
                    row = self.data[b] + at[b] * self.width[b]
                    if compare(row, into, self.n_words) != 0:
                        break
                    its_time = row + self.n_words if self.fixed[b] == NULL else self.fixed[b]
                    if is_before(its_time, time, self.depth):
                        total += row[self.width[b] - 1]
                    else:
                        join = joins.next()
                        for k in range(self.depth):
                            join[k] = max(its_time[k], time[k])
                        copy(join + self.depth, key, n_key)
                        join[self.depth + n_key] = 1
                        # Most are those of the rows before.
                        for j in range(max(first_join, joins.n - 9), joins.n - 1):
                            if compare(&joins.rows[j, 0], join, self.depth) == 0:
                                joins.n -= 1
                                break
                    at[b] += 1
            into[self.n_words] = total
            if total == 0:
                found.n -= 1


def read_history(batches, times, Rows keys, const int64_t[::1] time, Py_ssize_t n_words):
    cdef Histories histories = Histories(batches, times, n_words)
    cdef Py_ssize_t n_keys = keys.shape[0], n_key = keys.shape[1] - 1, depth = time.shape[0], i
    cdef Buffer found = Buffer(2 * n_keys + 8, n_words + 1)
    cdef Buffer joins = Buffer(8, depth + n_key + 1)
    for i in range(n_keys):
        histories.read(&keys[i, 0], n_key, &time[0], found, joins)
    return found.array[: found.n], joins.array[: joins.n]


cdef Py_ssize_t first_there(Buffer records, Py_ssize_t n_words, bint greatest) noexcept:
    """The first record of a group that is there, from the one end or the other; -1 of an empty one."""
    cdef Py_ssize_t i, found = -1
    cdef int64_t total = 0
    for i in range(records.n):
        total += records.rows[i, n_words]
        if records.rows[i, n_words] > 0 and (found < 0 or greatest):
            found = i
    return found if total > 0 else -1


def revise_firsts(
    batches, times, kept, kept_times, Rows keys, const int64_t[::1] time, Py_ssize_t n_words,
    bint greatest,
):
    cdef Histories inputs = Histories(batches, times, n_words)
    cdef Histories outputs = Histories(kept, kept_times, n_words)
    cdef Py_ssize_t n_keys = keys.shape[0], n_key = keys.shape[1] - 1, depth = time.shape[0]
    cdef Py_ssize_t i, j, first
    cdef Buffer records = Buffer(16, n_words + 1)
    cdef Buffer left = Buffer(4, n_words + 1)
    cdef Buffer changes = Buffer(2 * n_keys + 2, n_words + 1)
    cdef Buffer joins = Buffer(8, depth + n_key + 1)
    cdef const int64_t *answer
    cdef int64_t *into
    cdef int order
    cdef int64_t diff
    for i in range(n_keys):
        records.n = left.n = 0
        inputs.read(&keys[i, 0], n_key, &time[0], records, joins)
        outputs.read(&keys[i, 0], n_key, &time[0], left, joins)
        first = first_there(records, n_words, greatest)
        answer = NULL if first < 0 else &records.rows[first, 0]
        for j in range(left.n):
            diff = -left.rows[j, n_words]
            if answer != NULL:
                order = compare(answer, &left.rows[j, 0], n_words)
                if order < 0:
                    copy(changes.next(), answer, n_words)
                    changes.rows[changes.n - 1, n_words] = 1
                    answer = NULL
                elif order == 0:
                    diff += 1
                    answer = NULL
            if diff:
                into = changes.next()
                copy(into, &left.rows[j, 0], n_words)
                into[n_words] = diff
        if answer != NULL:
            into = changes.next()
            copy(into, answer, n_words)
            into[n_words] = 1
    return changes.array[: changes.n], joins.array[: joins.n]


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
