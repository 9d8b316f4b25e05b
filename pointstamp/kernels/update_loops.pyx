"""Loops over updates: rows of words, of which the last is the diff.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`consolidation`, `matches` and `group_states`.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    void __builtin_prefetch(const void *) noexcept nogil

cdef enum:
    RUN = 12  # so many rows are sorted by insertion, and then merged
    FEW = 32  # so many are sorted by insertion alone
    EVENLY = 1024  # among more rows a key is looked for where it would be
    AHEAD = 6  # so many keys ahead the memory is asked for
    NEAR = 16  # a batch of no more rows for a change has the next key near
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


def consolidate(rows):
    return consolidate_all([rows])


def consolidate_all(list parts):
    cdef Py_ssize_t n = 0, width = 0, n_kept, at = 0
    cdef bint swapped = False
    cdef Table part
    cdef int64_t *first
    cdef int64_t *second
    for rows in parts:
        look_at(rows, &part)
        check_width(part.width, width if n or at else part.width)
        width = part.width
        n += part.n
        at += 1
    array = np.empty((n, width), np.int64)
    if not n:
        return array
    look_at(array, &part)
    first = <int64_t *>part.rows
    at = 0
    for rows in parts:
        look_at(rows, &part)
        memcpy(first + at * width, part.rows, part.n * width * sizeof(int64_t))
        at += part.n
    if n <= FEW:
        insert_sorted(first, n, width)
        n_kept = sum_sorted(first, n, width)
    else:
        spare = np.empty((n, width), np.int64)
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
    array = np.empty((given.n, chosen.n + 1), np.int64)
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
    array = np.empty((n, n_key + 2), np.int64)
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
    cdef Py_ssize_t i = at[0], j = at[1], n = at[2], width = left.width, some
    cdef const int64_t *one
    cdef const int64_t *other
    cdef int64_t *to
    cdef int order
    while most > 0 and i < left.n and j < right.n:
        one, other, to = left.rows + i * width, right.rows + j * width, rows + n * width
        order = compare(one, other, width - 1)
        if order < 0:
            copy(to, one, width)
            i += 1
            n += 1
            most -= 1
        elif order > 0:
            copy(to, other, width)
            j += 1
            n += 1
            most -= 1
        elif most < 2:
            break
        else:
            copy(to, one, width - 1)
            if __builtin_add_overflow(one[width - 1], other[width - 1], to + width - 1):
                return True
            n += to[width - 1] != 0
            i += 1
            j += 1
            most -= 2
    if j == right.n and i < left.n:
        some = min(most, left.n - i)
        memcpy(rows + n * width, left.rows + i * width, some * width * sizeof(int64_t))
        i += some
        n += some
    elif i == left.n and j < right.n:
        some = min(most, right.n - j)
        memcpy(rows + n * width, right.rows + j * width, some * width * sizeof(int64_t))
        j += some
        n += some
    at[0], at[1], at[2] = i, j, n
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
    array = np.empty((one.n + other.n, one.width), np.int64)
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


cdef Py_ssize_t seek(
    const int64_t *rows,
    Py_ssize_t begin,
    Py_ssize_t n,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    bint after,
) noexcept nogil:
    """The first row from `begin` on that is not before the key or, `after`, is behind it.

    As `gallop`, but among many rows the steps begin where the key would be if first words were
    spread evenly, as numbers of texts and most keys are: each step is into memory that is in no
    cache.
    """
    cdef Py_ssize_t low = begin, high, step
    cdef int before = 1 if after else 0
    if n - begin > EVENLY:
        high = n - 1
        step = max(near(rows, 0, high, width, key[0]), begin)
        if compare(rows + step * width, key, n_key) < before:
            step = near(rows, step, high, width, key[0])
        else:
            step = max(near(rows, 0, step, width, key[0]), begin)
        if compare(rows + step * width, key, n_key) >= before:
            # It is before the row that was found, or is that row.
            high = step
            step = 1
            while high - step > begin and (
                compare(rows + (high - step) * width, key, n_key) >= before
            ):
                high -= step
                step *= 2
            return halve(rows, max(high - step, begin), high, width, key, n_key, before)
        low = step + 1
    return gallop(rows, low, n, width, key, n_key, after)


cdef Py_ssize_t gallop(
    const int64_t *rows,
    Py_ssize_t begin,
    Py_ssize_t n,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    bint after,
) noexcept nogil:
    """What `seek` finds, by steps that double, and halves of the last: near rows in few steps."""
    cdef Py_ssize_t low = begin, step = 1
    cdef int before = 1 if after else 0
    while low + step <= n and compare(rows + (low + step - 1) * width, key, n_key) < before:
        low += step
        step *= 2
    return halve(rows, low, min(low + step - 1, n), width, key, n_key, before)


cdef inline Py_ssize_t halve(
    const int64_t *rows,
    Py_ssize_t low,
    Py_ssize_t high,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    int before,
) noexcept nogil:
    """The first row from `low` to `high` that compares with the key as `before`, or more."""
    cdef Py_ssize_t middle
    while low < high:
        middle = low + (high - low) // 2
        if compare(rows + middle * width, key, n_key) < before:
            low = middle + 1
        else:
            high = middle
    return low


cdef void fetch(
    const int64_t *rows, Py_ssize_t n, Py_ssize_t width, const int64_t *key, bint again
) noexcept nogil:
    """Have the memory at hand into which `seek` steps first or, `again`, where it steps then.

    So that it waits once for several keys or batches, and not for one after the other.
    """
    cdef Py_ssize_t step
    if n > EVENLY:
        step = near(rows, 0, n - 1, width, key[0])
        if again:
            if rows[step * width] < key[0]:
                step = near(rows, step, n - 1, width, key[0])
            else:
                step = near(rows, 0, step, width, key[0])
        __builtin_prefetch(rows + step * width)


cdef inline Py_ssize_t near(
    const int64_t *rows, Py_ssize_t low, Py_ssize_t high, Py_ssize_t width, int64_t word
) noexcept nogil:
    """Where from `low` to `high` a first word would be, if those were spread evenly."""
    cdef double first = <double>rows[low * width], last = <double>rows[high * width]
    cdef double part
    if last <= first or <double>word <= first:
        return low
    part = (<double>word - first) / (last - first)
    return low + <Py_ssize_t>(part * <double>(high - low)) if part < 1.0 else high


cdef struct Run:
    # Rows of one key: of the changes, and of a batch.
    Py_ssize_t begin
    Py_ssize_t end
    Py_ssize_t batch
    Py_ssize_t first
    Py_ssize_t last


cdef struct Side:
    # Where to look: the rows of a batch, how far it was read, and whether the next key is near.
    const int64_t *rows
    Py_ssize_t n
    Py_ssize_t at
    bint is_near


def match_batches(given, list batches, int n_key, recipe):
    cdef Side sides[MOST_BATCHES]
    cdef Table changes
    cdef Places words
    look_at(given, &changes)
    look_at_places(recipe, &words)
    cdef Py_ssize_t n = changes.n, width = changes.width, n_words = words.n
    cdef Py_ssize_t n_batches = 0, batch_width = 0, n_runs = 0, room = 0, total = 0, n_pairs = 0
    cdef Py_ssize_t begin = 0, end, first, b, ahead
    cdef Run *runs = NULL
    cdef Run *larger
    cdef const int64_t *key
    cdef int status = 0
    cdef Table batch
    if len(batches) > MOST_BATCHES:
        raise ValueError(f"{len(batches)} batches, where at most {MOST_BATCHES} are read at a time")
    for rows in batches:
        look_at(rows, &batch)
        if batch.n:
            sides[n_batches].rows = batch.rows
            sides[n_batches].n = batch.n
            sides[n_batches].at = 0
            sides[n_batches].is_near = batch.n <= NEAR * n
            check_width(batch.width, batch_width if n_batches else batch.width)
            batch_width = batch.width
            n_batches += 1
    if not n or not n_batches:
        return np.empty((0, n_words + 1), np.int64)
    with nogil:
        for b in range(n_batches):
            for ahead in range(0 if sides[b].is_near else min(2 * AHEAD, n)):
                fetch(sides[b].rows, sides[b].n, batch_width, changes.rows + ahead * width, False)
        while begin < n:
            key = changes.rows + begin * width
            for b in range(n_batches):
                if sides[b].is_near:
                    continue
                if begin + 2 * AHEAD < n:
                    fetch(
                        sides[b].rows, sides[b].n, batch_width, key + 2 * AHEAD * width, False
                    )
                if begin + AHEAD < n:
                    fetch(sides[b].rows, sides[b].n, batch_width, key + AHEAD * width, True)
            end = begin + 1
            if end < n and compare(key + width, key, n_key) == 0:
                end = gallop(changes.rows, end, n, width, key, n_key, True)
            if n_runs + n_batches > room:
                room = 2 * room + n_batches
                larger = <Run *>realloc(runs, room * sizeof(Run))
                if larger == NULL:
                    status = -1
                    break
                runs = larger
            for b in range(n_batches):
                first = (gallop if sides[b].is_near else seek)(
                    sides[b].rows, sides[b].at, sides[b].n, batch_width, key, n_key, False
                )
                sides[b].at = first
                if first < sides[b].n and (
                    compare(sides[b].rows + first * batch_width, key, n_key) == 0
                ):
                    sides[b].at = gallop(
                        sides[b].rows, first + 1, sides[b].n, batch_width, key, n_key, True
                    )
                    runs[n_runs].begin = begin
                    runs[n_runs].end = end
                    runs[n_runs].batch = b
                    runs[n_runs].first = first
                    runs[n_runs].last = sides[b].at
                    total += (end - begin) * (sides[b].at - first)
                    n_runs += 1
            begin = end
    if status < 0:
        free(runs)
        raise MemoryError
    array = np.empty((total, n_words + 1), np.int64)
    look_at(array, &batch)
    cdef Py_ssize_t at = 0, next_
    if total:
        with nogil:
            while at < n_runs and n_pairs >= 0:
                next_ = at + 1
                while next_ < n_runs and runs[next_].begin == runs[at].begin:
                    next_ += 1
                n_pairs = pair_runs(
                    changes.rows, width, sides, batch_width, runs + at, next_ - at,
                    words.at, n_words, <int64_t *>batch.rows, n_pairs,
                )
                at = next_
    free(runs)
    if n_pairs == -1:
        refuse_sum()
    if n_pairs == -2:
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    return array if n_pairs == total else array[:n_pairs]


cdef Py_ssize_t pair_runs(
    const int64_t *changes,
    Py_ssize_t width,
    const Side *sides,
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
                    if not next_there(
                        data, size, at, n_batches, width, &prefix[0], n_key, &rows[n_rows, 0]
                    ):
                        found = most
                        break
                    found += min(rows[n_rows, width - 1], most - found)
                    n_rows += 1
        ends[i] = n_rows
    return array[:n_rows], ends_array
