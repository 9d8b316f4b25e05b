"""Loops over updates that keep their times.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`histories`.
"""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from pointstamp.errors import TimestampError
from pointstamp.kernels.arrays cimport (
    Places,
    Table,
    import_arrays,
    look_at,
    look_at_places,
    new_rows,
)
from pointstamp.kernels.update_loops cimport compare, copy
from pointstamp.kernels.update_searches cimport BLOCK, Searched, begin_search, look_ahead, seek_ahead
from pointstamp.kernels.update_sorts cimport FEW, insert_sorted, sort_rows, sum_sorted

import_arrays()

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil

ctypedef const int64_t[:, ::1] Rows

cdef enum:
    MOST_BATCHES = 64  # how many batches are read side by side


cdef class Buffer:
    """Rows that become more: `n` of `width` words."""

    cdef int64_t *rows
    cdef Py_ssize_t n, capacity, width

    def __cinit__(self, Py_ssize_t capacity, Py_ssize_t width):
        self.rows = <int64_t *>malloc(capacity * width * sizeof(int64_t))
        if self.rows == NULL:
            raise MemoryError
        self.n, self.capacity, self.width = 0, capacity, width

    def __dealloc__(self):
        free(self.rows)

    cdef int64_t *next(self) except NULL:
        """Where the next row is to be written."""
        cdef int64_t *larger
        if self.n == self.capacity:
            larger = <int64_t *>realloc(self.rows, 2 * self.capacity * self.width * sizeof(int64_t))
            if larger == NULL:
                raise MemoryError
            self.rows = larger
            self.capacity *= 2
        self.n += 1
        return self.rows + (self.n - 1) * self.width

    cdef inline int64_t *row(self, Py_ssize_t i) noexcept:
        return self.rows + i * self.width

    cdef int consolidate(self) except -1:
        """Sort the rows, and make equal ones one."""
        cdef int64_t *spare
        cdef Py_ssize_t n
        if self.n <= FEW:
            insert_sorted(self.rows, self.n, self.width)
        else:
            spare = <int64_t *>malloc(self.n * self.width * sizeof(int64_t))
            if spare == NULL:
                raise MemoryError
            if sort_rows(self.rows, spare, self.n, self.width):
                free(self.rows)
                self.rows = spare
                self.capacity = self.n
            else:
                free(spare)
        n = sum_sorted(self.rows, self.n, self.width)
        if n < 0:
            raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
        self.n = n
        return 0

    cdef object array(self):
        """All rows, as an array of their own."""
        return words_of(self.rows, self.n, self.width)


cdef object words_of(const int64_t *rows, Py_ssize_t n, Py_ssize_t width):
    """Rows as an array."""
    cdef Table table
    array = new_rows(n, width)
    if n:
        look_at(array, &table)
        memcpy(<int64_t *>table.rows, rows, n * width * sizeof(int64_t))
    return array


cdef int write_time(object time, int64_t *into, Py_ssize_t depth) except -1:
    cdef Py_ssize_t k
    cdef int beyond
    for k in range(depth):
        into[k] = PyLong_AsLongLongAndOverflow(time[k], &beyond)
        if beyond:
            raise TimestampError(
                f"collections in a loop have times below 2**63, in each coordinate; found {time}"
            )
    return 0


cdef tuple time_of(const int64_t *words, Py_ssize_t depth):
    if depth == 2:
        return words[0], words[1]
    return tuple([words[k] for k in range(depth)])


cdef class Times:
    """Times as words, one behind the other; what is None is left out."""

    cdef int64_t *words
    cdef Py_ssize_t n, depth

    def __cinit__(self, times, Py_ssize_t depth):
        cdef Py_ssize_t i = 0
        self.n, self.depth = len(times), depth
        self.words = <int64_t *>malloc(max(self.n * depth, 1) * sizeof(int64_t))
        if self.words == NULL:
            raise MemoryError
        for time in times:
            if time is not None:
                write_time(time, self.words + i * depth, depth)
            i += 1

    def __dealloc__(self):
        free(self.words)

    cdef inline const int64_t *at(self, Py_ssize_t i) noexcept:
        return self.words + i * self.depth

    cdef void represent(self, const int64_t *time, int64_t *into) noexcept nogil:
        """Write the meet of the joins of a time with each of these; both may be one place."""
        cdef Py_ssize_t k, f
        cdef int64_t word, other
        for k in range(self.depth):
            word = max(time[k], self.words[k])
            for f in range(1, self.n):
                other = max(time[k], self.words[f * self.depth + k])
                if other < word:
                    word = other
            into[k] = word


cdef bint is_before(const int64_t *one, const int64_t *other, Py_ssize_t depth) noexcept nogil:
    """Whether a time is at or before another, in each coordinate."""
    cdef Py_ssize_t k
    for k in range(depth):
        if one[k] > other[k]:
            return False
    return True


cdef inline bint is_at(
    const Searched *table, Py_ssize_t at, const int64_t *key, Py_ssize_t n_key
) noexcept nogil:
    """Whether a group has a row at a place of a batch."""
    return at < table.n and compare(table.rows + at * table.width, key, n_key) == 0


cdef class Histories:
    """Batches that are read side by side, group by group.

    fixed : the time of a batch, where its rows have none of their own
    begin : where in a batch the next group is looked for
    keys : the groups, in order, each with one word more
    """

    cdef Searched *tables
    cdef const int64_t **fixed
    cdef Py_ssize_t *begin
    cdef Py_ssize_t n_batches, n_words, depth, block, block_end
    cdef Py_ssize_t *places
    cdef Table keys
    cdef Times times
    cdef list kept

    def __cinit__(self, list batches, times, keys, Py_ssize_t n_words, Py_ssize_t depth):
        cdef Py_ssize_t b, n_ahead
        cdef Table table
        self.n_batches, self.n_words, self.depth = len(batches), n_words, depth
        if self.n_batches > MOST_BATCHES:
            raise ValueError(
                f"{self.n_batches} batches, where at most {MOST_BATCHES} are read at a time"
            )
        self.times, self.kept = Times(times, depth), batches
        look_at(keys, &self.keys)
        self.block = self.block_end = 0
        n_ahead = min(BLOCK, self.keys.n)
        # In one piece, for the few that there are: an object that has room for all is zeroed.
        self.tables = <Searched *>malloc(
            self.n_batches
            * (sizeof(Searched) + sizeof(int64_t *) + (n_ahead + 1) * sizeof(Py_ssize_t))
            + 1
        )
        if self.tables == NULL:
            raise MemoryError
        self.fixed = <const int64_t **>(self.tables + self.n_batches)
        self.begin = <Py_ssize_t *>(self.fixed + self.n_batches)
        self.places = self.begin + self.n_batches
        for b in range(self.n_batches):
            look_at(batches[b], &table)
            begin_search(
                &self.tables[b], table.rows, table.n, table.width, self.keys.n,
                self.places + b * n_ahead,
            )
            self.begin[b] = 0
            self.fixed[b] = self.times.at(b) if table.width == n_words + 1 else NULL

    def __dealloc__(self):
        free(self.tables)

    cdef int read(self, Py_ssize_t number, const int64_t *time, Buffer found, Buffer joins) except -1:
        """Append what a group has as of a time, and the joins of its other times with it.

        Groups are to be asked for in order.
        """
        cdef Py_ssize_t at[MOST_BATCHES]
        cdef Py_ssize_t having[MOST_BATCHES]  # the batches that have more of the group, in order
        cdef Py_ssize_t same[MOST_BATCHES]  # places in `having` of those whose next row is the least
        cdef Py_ssize_t n_having = 0, n_same, n_ended
        cdef Py_ssize_t b, i, k, j, first_join = joins.n
        cdef Py_ssize_t n_key = self.keys.width - 1
        cdef const int64_t *key = self.keys.rows + number * self.keys.width
        cdef const int64_t *row
        cdef const int64_t *first
        cdef const int64_t *its_time
        cdef int64_t *into
        cdef int64_t *join
        cdef int64_t total
        cdef int order
        cdef Searched *table
        if number == self.block_end:
            self.block, self.block_end = number, min(number + BLOCK, self.keys.n)
            look_ahead(
                self.tables, self.n_batches, key, self.block_end - number, self.keys.width
            )
        for b in range(self.n_batches):
            table = &self.tables[b]
            at[b] = seek_ahead(table, self.begin[b], key, n_key, number - self.block)
            self.begin[b] = at[b]
            if is_at(table, at[b], key, n_key):
                having[n_having] = b
                n_having += 1
        while n_having:
            first = NULL
            n_same = 0
            for i in range(n_having):
                b = having[i]
                row = self.tables[b].rows + at[b] * self.tables[b].width
                order = -1 if first == NULL else compare(row, first, self.n_words)
                if order < 0:
                    first = row
                    n_same = 0
                if order <= 0:
                    same[n_same] = i
                    n_same += 1
            into = found.next()
            copy(into, first, self.n_words)
            total = n_ended = 0
            for i in range(n_same):
                b = having[same[i]]
                table = &self.tables[b]
                row = table.rows + at[b] * table.width
                while True:
                    its_time = row + self.n_words if self.fixed[b] == NULL else self.fixed[b]
                    if is_before(its_time, time, self.depth):
                        total += row[table.width - 1]
                    else:
                        join = joins.next()
                        for k in range(self.depth):
                            join[k] = max(its_time[k], time[k])
                        copy(join + self.depth, key, n_key)
                        join[self.depth + n_key] = 1
                        # Most are those of the rows before.
                        for j in range(max(first_join, joins.n - 9), joins.n - 1):
                            if compare(joins.row(j), join, self.depth) == 0:
                                joins.n -= 1
                                break
                    at[b] += 1
                    row += table.width
                    if not is_at(table, at[b], key, n_key):
                        having[same[i]] = -1
                        n_ended += 1
                        break
                    if compare(row + n_key, into + n_key, self.n_words - n_key) != 0:
                        break
            if n_ended:
                k = 0
                for i in range(n_having):
                    if having[i] >= 0:
                        having[k] = having[i]
                        k += 1
                n_having = k
            into[self.n_words] = total
            if total == 0:
                found.n -= 1


def read_history(list batches, times, keys, tuple time, Py_ssize_t n_words):
    cdef Py_ssize_t depth = len(time), i
    cdef Histories histories = Histories(batches, times, keys, n_words, depth)
    cdef Py_ssize_t n_keys = histories.keys.n, n_key = histories.keys.width - 1
    cdef Times now = Times((time,), depth)
    cdef Buffer found = Buffer(2 * n_keys + 8, n_words + 1)
    cdef Buffer joins = Buffer(8, depth + n_key + 1)
    for i in range(n_keys):
        histories.read(i, now.words, found, joins)
    return found.array(), joins.array()


cdef Py_ssize_t first_there(Buffer records, Py_ssize_t n_words, bint greatest) noexcept:
    """The first record of a group that is there, from the one end or the other; -1 of an empty one."""
    cdef Py_ssize_t i, found = -1
    cdef int64_t total = 0, diff
    for i in range(records.n):
        diff = records.row(i)[n_words]
        total += diff
        if diff > 0 and (found < 0 or greatest):
            found = i
    return found if total > 0 else -1


def revise_firsts(
    list batches, times, list kept, kept_times, keys, tuple time, Py_ssize_t n_words, bint greatest
):
    cdef Py_ssize_t depth = len(time)
    cdef Histories inputs = Histories(batches, times, keys, n_words, depth)
    cdef Py_ssize_t n_keys = inputs.keys.n, n_key = inputs.keys.width - 1
    cdef Histories outputs = Histories(kept, kept_times, keys, n_words, depth)
    cdef Times now = Times((time,), depth)
    cdef Py_ssize_t i, j, first
    cdef Buffer records = Buffer(16, n_words + 1)
    cdef Buffer left = Buffer(4, n_words + 1)
    cdef Buffer changes = Buffer(2 * n_keys + 2, n_words + 1)
    cdef Buffer joins = Buffer(8, depth + n_key + 1)
    cdef const int64_t *answer
    cdef const int64_t *before
    cdef int64_t *into
    cdef int order
    cdef int64_t diff
    for i in range(n_keys):
        records.n = left.n = 0
        inputs.read(i, now.words, records, joins)
        outputs.read(i, now.words, left, joins)
        first = first_there(records, n_words, greatest)
        answer = NULL if first < 0 else records.row(first)
        for j in range(left.n):
            before = left.row(j)
            diff = -before[n_words]
            if answer != NULL:
                order = compare(answer, before, n_words)
                if order < 0:
                    into = changes.next()
                    copy(into, answer, n_words)
                    into[n_words] = 1
                    answer = NULL
                elif order == 0:
                    diff += 1
                    answer = NULL
            if diff:
                into = changes.next()
                copy(into, before, n_words)
                into[n_words] = diff
        if answer != NULL:
            into = changes.next()
            copy(into, answer, n_words)
            into[n_words] = 1
    return changes.array(), joins.array()


def advance_times(Rows rows, list frontier):
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], depth = len(frontier[0])
    cdef Times asked = Times(frontier, depth)
    cdef Py_ssize_t n_words = width - depth - 1
    cdef Py_ssize_t i = 0, start, kept = 0, j, k, f
    cdef int64_t word
    cdef bint overflows = False
    array = new_rows(n, width)
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
                asked.represent(row + n_words, row + n_words)
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


def advance_together(list batches, times, list frontier):
    cdef Py_ssize_t depth = len(frontier[0]), n_words = 0, n = 0, b = 0, i, k
    cdef Times own = Times(times, depth), asked = Times(frontier, depth)
    cdef Table table
    cdef Buffer found
    cdef int64_t *row
    cdef const int64_t *time
    cdef bint is_one = True
    for b in range(own.n):
        look_at(batches[b], &table)
        n += table.n
        n_words = table.width - 1 - (depth if times[b] is None else 0)
    found = Buffer(n + 1, n_words + depth + 1)
    for b in range(own.n):
        look_at(batches[b], &table)
        for i in range(table.n):
            row = found.next()
            copy(row, table.rows + i * table.width, n_words)
            time = table.rows + i * table.width + n_words if times[b] is None else own.at(b)
            asked.represent(time, row + n_words)
            row[n_words + depth] = table.rows[(i + 1) * table.width - 1]
            is_one = is_one and compare(row + n_words, found.rows + n_words, depth) == 0
    if not n or not is_one:
        found.consolidate()
        return found.array(), None
    first = time_of(found.rows + n_words, depth)
    # Behind the words of each there is its diff, and no time.
    found.width -= depth
    for i in range(n):
        row = found.rows + i * (n_words + depth + 1)
        for k in range(n_words):
            found.row(i)[k] = row[k]
        found.row(i)[n_words] = row[n_words + depth]
    found.consolidate()
    return found.array(), first


cdef bint pair_times(
    object changes,
    Times now,
    list batches,
    Times own,
    times,
    Py_ssize_t first_batch,
    Py_ssize_t n_key,
    const Places *words,
    Buffer pairs,
    Py_ssize_t most,
) except -1:
    """Pair changes with the records of `MOST_BATCHES` batches from one on, where there are so many.

    Whether there are at most `most` pairs; if not, only some are made.
    """
    cdef Searched tables[MOST_BATCHES]
    cdef Py_ssize_t places[MOST_BATCHES * BLOCK]
    cdef Py_ssize_t at[MOST_BATCHES]
    cdef const int64_t *fixed[MOST_BATCHES]
    cdef Py_ssize_t n_batches = min(own.n - first_batch, MOST_BATCHES), depth = now.depth
    cdef Py_ssize_t b, i, k, begin = 0, end, block = 0, block_end = 0
    cdef Table mine, table
    cdef const int64_t *key
    cdef const int64_t *change
    cdef const int64_t *other
    cdef const int64_t *its_time
    cdef int64_t *pair
    look_at(changes, &mine)
    for b in range(n_batches):
        look_at(batches[first_batch + b], &table)
        begin_search(
            &tables[b], table.rows, table.n, table.width, mine.n, &places[b * BLOCK],
        )
        at[b] = 0
        fixed[b] = NULL
        if times[first_batch + b] is not None:
            fixed[b] = own.at(first_batch + b)
    while begin < mine.n:
        key = mine.rows + begin * mine.width
        if begin >= block_end:
            block, block_end = begin, min(begin + BLOCK, mine.n)
            look_ahead(tables, n_batches, key, block_end - block, mine.width)
        end = begin + 1
        while end < mine.n and compare(mine.rows + end * mine.width, key, n_key) == 0:
            end += 1
        for b in range(n_batches):
            at[b] = seek_ahead(&tables[b], at[b], key, n_key, begin - block)
            other = tables[b].rows + at[b] * tables[b].width
            while at[b] < tables[b].n and compare(other, key, n_key) == 0:
                its_time = fixed[b]
                if its_time == NULL:
                    its_time = other + tables[b].width - 1 - depth
                for i in range(begin, end):
                    change = mine.rows + i * mine.width
                    pair = pairs.next()
                    for k in range(depth):
                        pair[k] = max(its_time[k], now.words[k])
                    for k in range(words.n):
                        pair[depth + k] = (
                            change[words.at[k]] if words.at[k] >= 0 else other[~words.at[k]]
                        )
                    if __builtin_mul_overflow(
                        change[mine.width - 1], other[tables[b].width - 1], &pair[depth + words.n]
                    ):
                        raise OverflowError(
                            "the product of the diffs of two records is beyond 64 bits"
                        )
                if pairs.n > most:
                    return False
                at[b] += 1
                other += tables[b].width
        begin = end
    return True


def match_times(
    changes, tuple time, list batches, times, Py_ssize_t n_key, recipe, Py_ssize_t most
):
    cdef Places words
    look_at_places(recipe, &words)
    cdef Py_ssize_t depth = len(time), n_words = words.n, first_batch
    cdef Times own = Times(times, depth), now = Times((time,), depth)
    cdef Buffer pairs = Buffer(8, depth + n_words + 1)
    for first_batch in range(0, own.n, MOST_BATCHES):
        if not pair_times(
            changes, now, batches, own, times, first_batch, n_key, &words, pairs, most
        ):
            return None, pairs.n
    cdef Py_ssize_t n = pairs.n
    pairs.consolidate()
    return split(pairs.rows, pairs.n, pairs.width, depth), n


def distinct(list parts, Py_ssize_t n_words):
    cdef Table table
    cdef Py_ssize_t n = 0, i
    cdef Buffer found
    cdef int64_t *row
    for part in parts:
        look_at(part, &table)
        n += table.n
    found = Buffer(n + 1, n_words + 1)
    for part in parts:
        look_at(part, &table)
        for i in range(table.n):
            row = found.row(found.n)
            copy(row, table.rows + i * table.width, n_words)
            row[n_words] = 1
            # Of rows in order equal ones follow each other.
            found.n += found.n == 0 or compare(row, row - found.width, n_words) != 0
    found.consolidate()
    for i in range(found.n):
        found.row(i)[n_words] = 1
    return found.array()


def split_by_first(rows, Py_ssize_t depth):
    cdef Table table
    look_at(rows, &table)
    return split(table.rows, table.n, table.width, depth)


cdef list split(const int64_t *rows, Py_ssize_t n, Py_ssize_t width, Py_ssize_t depth):
    """See `split_by_first`."""
    cdef Py_ssize_t begin = 0, end, i
    cdef Table table
    cdef list found = []
    while begin < n:
        end = begin + 1
        while end < n and compare(rows + begin * width, rows + end * width, depth) == 0:
            end += 1
        part = new_rows(end - begin, width - depth)
        look_at(part, &table)
        for i in range(begin, end):
            copy(
                <int64_t *>table.rows + (i - begin) * table.width,
                rows + i * width + depth,
                table.width,
            )
        found.append((time_of(rows + begin * width, depth), part))
        begin = end
    return found
