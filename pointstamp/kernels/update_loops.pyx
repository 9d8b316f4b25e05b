"""Loops over updates: rows of words, of which the last is the diff.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`consolidation`, `matches` and `group_states`.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from pointstamp.kernels.arrays cimport (
    Places,
    Table,
    import_arrays,
    look_at,
    look_at_places,
    new_rows,
)
from pointstamp.kernels.update_searches cimport (
    BLOCK,
    Searched,
    begin_search,
    gallop,
    look_ahead,
    seek,
    seek_ahead,
)
from pointstamp.kernels.update_sorts cimport FEW, either, insert_sorted, sort_rows, sum_sorted

import_arrays()

# Not looked up in each call.
cdef object empty = np.empty, int64 = np.dtype("int64")

cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil

cdef enum:
    MOST_BATCHES = 64  # how many batches are read side by side


cdef int check_width(Py_ssize_t width, Py_ssize_t other) except -1:
    """Refuse rows without a diff, and such of another form than others."""
    if width < 1 or width != other:
        raise ValueError(f"rows of updates have {width} and {other} words, and need as many, and 1")
    return 0


def consolidate(rows):
    return consolidate_all([rows])


cdef object in_one(list parts):
    """The rows of several, in their order."""
    cdef Py_ssize_t n = 0, width = 0, at = 0
    cdef Table part
    cdef int64_t *first
    for rows in parts:
        look_at(rows, &part)
        check_width(part.width, width if n or at else part.width)
        width = part.width
        n += part.n
        at += 1
    array = new_rows(n, width)
    if n:
        look_at(array, &part)
        first = <int64_t *>part.rows
        at = 0
        for rows in parts:
            look_at(rows, &part)
            memcpy(first + at * width, part.rows, part.n * width * sizeof(int64_t))
            at += part.n
    return array


def concatenate(list parts):
    return in_one(parts)


def rows_of(list words, Py_ssize_t width):
    cdef Py_ssize_t n = len(words), place
    cdef Table made
    cdef int64_t *to
    if width < 1 or n % width:
        raise ValueError(f"{n} words are no rows of {width}")
    array = new_rows(n // width, width)
    look_at(array, &made)
    to = <int64_t *>made.rows
    for place in range(n):
        to[place] = words[place]
    return array


def consolidate_all(list parts):
    cdef Py_ssize_t n, width, n_kept
    cdef bint swapped = False
    cdef Table part
    cdef int64_t *first
    cdef int64_t *second
    array = in_one(parts)
    look_at(array, &part)
    n, width = part.n, part.width
    if not n:
        return array
    first = <int64_t *>part.rows
    if n <= FEW:
        insert_sorted(first, n, width)
        n_kept = sum_sorted(first, n, width)
    else:
        spare = new_rows(n, width)
        look_at(spare, &part)
        second = <int64_t *>part.rows
        with nogil:
            swapped = sort_rows(first, second, n, width)
            n_kept = sum_sorted(second if swapped else first, n, width)
        if swapped:
            array = spare
    if n_kept < 0:
        refuse_sum()
    return array if n_kept == n else array[:n_kept]


def choose_words(rows, places):
    cdef Table given, made
    cdef Places chosen
    cdef Py_ssize_t i, k
    cdef const int64_t *row
    cdef int64_t *to
    look_at(rows, &given)
    look_at_places(places, &chosen)
    array = new_rows(given.n, chosen.n + 1)
    look_at(array, &made)
    with nogil:
        for i in range(given.n):
            row = given.rows + i * given.width
            to = <int64_t *>made.rows + i * made.width
            for k in range(chosen.n):
                to[k] = row[chosen.at[k]]
            to[chosen.n] = row[given.width - 1]
    return array


def values_by_key(Rows rows, int n_key, int value, int flag, int64_t mask):
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], i, k, n_there = 0
    array = new_rows(n, n_key + 2)
    cdef int64_t[:, ::1] chosen = array
    with nogil:
        for i in range(n):
            if flag >= 0 and rows[i, flag] == 0:
                continue
            for k in range(n_key):
                chosen[n_there, k] = rows[i, k]
            chosen[n_there, n_key] = rows[i, value] ^ mask
            chosen[n_there, n_key + 1] = rows[i, width - 1]
            n_there += 1
    return array[:n_there]


cdef bint merge_rows(
    const Table *left, const Table *right, int64_t *rows, Py_ssize_t *at, Py_ssize_t most
) noexcept nogil:
    """Go on with a merge by `most` rows of both; whether a sum of diffs is beyond 64 bits.

    at : how many rows were read of the left, of the right, and written
    """
    # What a constant is known of is copied without a loop.
    if left.width == 2:
        return merge_rows_of(left, right, rows, at, most, 2)
    if left.width == 3:
        return merge_rows_of(left, right, rows, at, most, 3)
    if left.width == 4:
        return merge_rows_of(left, right, rows, at, most, 4)
    return merge_rows_of(left, right, rows, at, most, left.width)


cdef inline bint merge_rows_of(
    const Table *left,
    const Table *right,
    int64_t *rows,
    Py_ssize_t *at,
    Py_ssize_t most,
    Py_ssize_t width,
) noexcept nogil:
    """What `merge_rows` does, of rows of `width` words."""
    cdef Py_ssize_t i = at[0], j = at[1], n = at[2], some, is_left
    cdef const int64_t *one = left.rows + i * width
    cdef const int64_t *other = right.rows + j * width
    cdef int64_t *to = rows + n * width
    cdef int order
    while most > 0 and i < left.n and j < right.n:
        if width > 1 and one[0] != other[0]:
            # Which side is next is a guess at most times: that is no branch.
            is_left = one[0] < other[0]
            copy(to, either(one, other, is_left), width)
            i += is_left
            j += 1 - is_left
            one += -is_left & width
            other += (is_left - 1) & width
            to += width
            most -= 1
            continue
        order = compare(one, other, width - 1)
        if order < 0:
            copy(to, one, width)
            i += 1
            one += width
            to += width
            most -= 1
        elif order > 0:
            copy(to, other, width)
            j += 1
            other += width
            to += width
            most -= 1
        elif most < 2:
            break
        else:
            copy(to, one, width - 1)
            if __builtin_add_overflow(one[width - 1], other[width - 1], to + width - 1):
                return True
            to += width if to[width - 1] != 0 else 0
            i += 1
            j += 1
            one += width
            other += width
            most -= 2
    some = 0
    if j == right.n and i < left.n:
        some = min(most, left.n - i)
        memcpy(to, one, some * width * sizeof(int64_t))
        i += some
    elif i == left.n and j < right.n:
        some = min(most, right.n - j)
        memcpy(to, other, some * width * sizeof(int64_t))
        j += some
    at[0], at[1], at[2] = i, j, (to - rows) // width + some
    return False


cdef refuse_sum():
    """Say that a sum of diffs is too large."""
    raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")


def merge(left, right):
    cdef Table one, other, whole
    cdef Py_ssize_t at[3]
    cdef bint overflows
    at[0] = at[1] = at[2] = 0
    look_at(left, &one)
    look_at(right, &other)
    check_width(one.width, other.width)
    array = new_rows(one.n + other.n, one.width)
    look_at(array, &whole)
    with nogil:
        overflows = merge_rows(&one, &other, <int64_t *>whole.rows, at, one.n + other.n)
    if overflows:
        refuse_sum()
    return array[:at[2]]


def merge_some(left, right, rows, int64_t[::1] at, Py_ssize_t most):
    cdef Table one, other, whole
    cdef bint overflows
    look_at(left, &one)
    look_at(right, &other)
    look_at(rows, &whole)
    check_width(one.width, other.width)
    check_width(one.width, whole.width)
    with nogil:
        overflows = merge_rows(
            &one, &other, <int64_t *>whole.rows, <Py_ssize_t *>&at[0], most
        )
    if overflows:
        refuse_sum()


def piece_of_two(
    Rows left, Py_ssize_t i, Rows right, Py_ssize_t j, Py_ssize_t most, int n_words
):
    cdef Py_ssize_t n_left = left.shape[0], n_right = right.shape[0], part = max(most // 2, 1)
    cdef const int64_t *last = NULL
    cdef const int64_t *other
    if i < n_left:
        last = &left[min(i + part, n_left) - 1, 0]
    if j < n_right:
        other = &right[min(j + part, n_right) - 1, 0]
        if last == NULL or compare(other, last, n_words) < 0:
            last = other
    if last == NULL:
        return i, j
    if i < n_left:
        i = seek(&left[0, 0], i, n_left, left.shape[1], last, n_words, True)
    if j < n_right:
        j = seek(&right[0, 0], j, n_right, right.shape[1], last, n_words, True)
    return i, j


cdef struct Run:
    # Rows of one key: of the changes, and of a batch.
    Py_ssize_t begin
    Py_ssize_t end
    Py_ssize_t batch
    Py_ssize_t first
    Py_ssize_t last


def match_batches(given, list batches, int n_key, recipe):
    return _match(given, batches, n_key, recipe, 0, PY_SSIZE_T_MAX, None)[0]


def match_some(
    given, list batches, int n_key, recipe, Py_ssize_t begin, Py_ssize_t most, after=None
):
    return _match(given, batches, n_key, recipe, begin, most, after)


cdef tuple _match(
    given, list batches, int n_key, recipe, Py_ssize_t begin, Py_ssize_t most, after
):
    cdef Searched sides[MOST_BATCHES]
    cdef Py_ssize_t at[MOST_BATCHES]
    cdef Py_ssize_t places[MOST_BATCHES * BLOCK]
    cdef Table changes
    cdef Places words
    look_at(given, &changes)
    look_at_places(recipe, &words)
    cdef Py_ssize_t n = changes.n, width = changes.width, n_words = words.n
    cdef Py_ssize_t n_batches = 0, batch_width = 0, n_runs = 0, room = 0, total = 0, n_pairs = 0
    cdef Py_ssize_t end, first, b, block = 0, block_end = begin, group, n_before
    cdef Run *runs = NULL
    cdef Run *larger
    cdef const int64_t *key
    cdef int status = 0
    cdef Table batch
    cdef Table met = changes  # read where there is a rest, and is another one there
    cdef bint is_rest = after is not None
    # The last record that the row `begin` is paired with, if there are more of its key.
    cdef const int64_t *last = NULL
    if is_rest:
        look_at(after, &met)
    if len(batches) > MOST_BATCHES:
        raise ValueError(f"{len(batches)} batches, where at most {MOST_BATCHES} are read at a time")
    for rows in batches:
        look_at(rows, &batch)
        if batch.n:
            begin_search(
                &sides[n_batches], batch.rows, batch.n, batch.width, n,
                &places[n_batches * BLOCK],
            )
            at[n_batches] = 0
            check_width(batch.width, batch_width if n_batches else batch.width)
            batch_width = batch.width
            n_batches += 1
    if not n or not n_batches:
        return new_rows(0, n_words + 1), n, None
    with nogil:
        while begin < n and total < most:
            key = changes.rows + begin * width
            if begin >= block_end:
                block, block_end = begin, min(begin + BLOCK, n)
                look_ahead(sides, n_batches, key, block_end - block, width)
            end = begin + 1
            if not is_rest and end < n and compare(key + width, key, n_key) == 0:
                end = gallop(changes.rows, end, n, width, key, n_key, True)
            if n_runs + n_batches > room:
                room = 2 * room + n_batches
                larger = <Run *>realloc(runs, room * sizeof(Run))
                if larger == NULL:
                    status = -1
                    break
                runs = larger
            group = 0
            n_before = n_runs
            for b in range(n_batches):
                first = seek_ahead(&sides[b], at[b], key, n_key, begin - block)
                if is_rest:
                    first = gallop(
                        sides[b].rows, first, sides[b].n, batch_width, met.rows, met.width, True
                    )
                at[b] = first
                if first < sides[b].n and (
                    compare(sides[b].rows + first * batch_width, key, n_key) == 0
                ):
                    at[b] = gallop(
                        sides[b].rows, first + 1, sides[b].n, batch_width, key, n_key, True
                    )
                    runs[n_runs].begin = begin
                    runs[n_runs].end = end
                    runs[n_runs].batch = b
                    runs[n_runs].first = first
                    runs[n_runs].last = at[b]
                    group += at[b] - first
                    n_runs += 1
            if group > most:
                # Of a key that has many records, one change with as many as are wanted.
                last = cut_runs(sides, batch_width, runs + n_before, n_runs - n_before, most)
                group = 0
                for b in range(n_before, n_runs):
                    runs[b].end = begin + 1
                    group += runs[b].last - runs[b].first
                total += group
                begin += last == NULL
                break
            if group and end - begin > most // group:
                # Of a key that many changes have, as many as are wanted, and no other key.
                end = begin + most // group
                for b in range(n_before, n_runs):
                    runs[b].end = end
                is_rest = True
            total += (end - begin) * group
            begin = end
            if is_rest:
                break
    if status < 0:
        free(runs)
        raise MemoryError
    array = new_rows(total, n_words + 1)
    look_at(array, &batch)
    cdef Py_ssize_t run = 0, next_
    if total:
        with nogil:
            while run < n_runs and n_pairs >= 0:
                next_ = run + 1
                while next_ < n_runs and runs[next_].begin == runs[run].begin:
                    next_ += 1
                n_pairs = pair_runs(
                    changes.rows, width, sides, batch_width, runs + run, next_ - run,
                    words.at, n_words, <int64_t *>batch.rows, n_pairs,
                )
                run = next_
    free(runs)
    if n_pairs == -1:
        refuse_sum()
    if n_pairs == -2:
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    after = None
    if last != NULL:
        after = new_rows(1, batch_width - 1)
        look_at(after, &batch)
        copy(<int64_t *>batch.rows, last, batch_width - 1)
    return (array if n_pairs == total else array[:n_pairs]), begin, after


cdef const int64_t *cut_runs(
    const Searched *sides, Py_ssize_t width, Run *runs, Py_ssize_t n_runs, Py_ssize_t most
) noexcept nogil:
    """Leave of the rows of a key some `most`, up to a record, which is given; NULL if it is all."""
    cdef Py_ssize_t part = max(most // n_runs, 1), r
    cdef const int64_t *last = NULL
    cdef const int64_t *row
    for r in range(n_runs):
        if runs[r].last - runs[r].first > part:
            row = sides[runs[r].batch].rows + (runs[r].first + part - 1) * width
            if last == NULL or compare(row, last, width - 1) < 0:
                last = row
    if last != NULL:
        for r in range(n_runs):
            runs[r].last = gallop(
                sides[runs[r].batch].rows, runs[r].first, runs[r].last, width, last, width - 1, True
            )
    return last


cdef Py_ssize_t pair_runs(
    const int64_t *changes,
    Py_ssize_t width,
    const Searched *sides,
    Py_ssize_t batch_width,
    Run *runs,
    Py_ssize_t n_runs,
    const int32_t *recipe,
    Py_ssize_t n_words,
    int64_t *pairs,
    Py_ssize_t n_pairs,
) noexcept nogil:
    """Pair the changes of a key with its rows in some batches, each record once; how many pairs.

    What is in several batches is summed up first: records that cancel make no pairs. Advances
    the runs. -1 if a sum is beyond 64 bits, -2 if a product is.
    """
    cdef const int64_t *record
    cdef const int64_t *other
    cdef int64_t *pair
    cdef int64_t diff
    cdef Py_ssize_t r, k, change
    cdef int order
    while True:
        record = NULL
        diff = 0
        for r in range(n_runs):
            if runs[r].first == runs[r].last:
                continue
            other = sides[runs[r].batch].rows + runs[r].first * batch_width
            order = -1 if record == NULL else compare(other, record, batch_width - 1)
            if order < 0:
                record = other
                diff = 0
            if order <= 0 and __builtin_add_overflow(diff, other[batch_width - 1], &diff):
                return -1
        if record == NULL:
            return n_pairs
        for r in range(n_runs):
            if runs[r].first < runs[r].last:
                other = sides[runs[r].batch].rows + runs[r].first * batch_width
                if other == record or (
                    n_runs > 1 and compare(other, record, batch_width - 1) == 0
                ):
                    runs[r].first += 1
        if diff == 0:
            continue
        for change in range(runs[0].begin, runs[0].end):
            pair = pairs + n_pairs * (n_words + 1)
            other = changes + change * width
            for k in range(n_words):
                pair[k] = other[recipe[k]] if recipe[k] >= 0 else record[~recipe[k]]
            if __builtin_mul_overflow(other[width - 1], diff, &pair[n_words]):
                return -2
            n_pairs += 1


cdef bint next_there(
    const int64_t **data,
    const Py_ssize_t *size,
    Py_ssize_t *at,
    Py_ssize_t n_batches,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    int64_t *into,
) noexcept nogil:
    """Copy the next record of a key that is there, with its count; whether there is one.

    at : where to go on in each batch, which is moved on
    """
    cdef Py_ssize_t b, best
    cdef int64_t total
    cdef const int64_t *row
    while True:
        best = -1
        for b in range(n_batches):
            if at[b] < size[b]:
                row = data[b] + at[b] * width
                if compare(row, key, n_key) == 0 and (
                    best < 0 or compare(row, data[best] + at[best] * width, width - 1) < 0
                ):
                    best = b
        if best < 0:
            return False
        copy(into, data[best] + at[best] * width, width)
        total = 0
        for b in range(n_batches):
            if at[b] < size[b] and compare(data[b] + at[b] * width, into, width - 1) == 0:
                total += data[b][at[b] * width + width - 1]
                at[b] += 1
        if total > 0:
            into[width - 1] = total
            return True


def read_groups(batches, Rows keys, Rows starts, int64_t most):
    cdef Py_ssize_t n_batches = len(batches), n_keys = keys.shape[0], n_key = keys.shape[1]
    cdef Py_ssize_t n_start = starts.shape[1], b, i, width = 0, n_rows = 0, capacity
    cdef const int64_t *data[MOST_BATCHES]
    cdef Py_ssize_t size[MOST_BATCHES]
    cdef Py_ssize_t at[MOST_BATCHES]
    cdef Rows view
    cdef int64_t found
    if n_batches > MOST_BATCHES:
        raise ValueError(f"{n_batches} batches, where at most {MOST_BATCHES} are read at a time")
    kept = [part for part in batches if len(part)]
    n_batches = len(kept)
    for b in range(n_batches):
        view = kept[b]
        data[b] = &view[0, 0]
        size[b] = view.shape[0]
        width = view.shape[1]
    ends_array = np.zeros(n_keys, int64)
    if n_batches == 0:
        return new_rows(0, n_key + n_start + 1), ends_array
    cdef int64_t[::1] ends = ends_array
    prefix_array = empty(n_key + n_start, int64)
    cdef int64_t[::1] prefix = prefix_array
    capacity = 2 * n_keys + 8
    array = new_rows(capacity, width)
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
                grown = new_rows(capacity, width)
                grown[:n_rows] = array
                array = grown
                rows = array
            spare = capacity
            with nogil:
                while n_rows < spare and found < most:
                    if not next_there(
                        data, size, at, n_batches, width, &prefix[0], n_key, &rows[n_rows, 0]
                    ):
                        found = most
                        break
                    found += min(rows[n_rows, width - 1], most - found)
                    n_rows += 1
        ends[i] = n_rows
    return array[:n_rows], ends_array
