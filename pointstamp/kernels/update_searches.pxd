"""Searches among sorted rows of updates, by the first words of a key."""

from libc.stdint cimport int64_t

from pointstamp.kernels.update_loops cimport compare

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void *) noexcept nogil

cdef enum:
    EVENLY = 1024  # among more rows a key is looked for where it would be
    STEPS = 3  # by so many steps, each nearer to it
    BLOCK = 64  # for so many keys together the memory is asked for
    ONE_BY_ONE = 4  # so many rows are looked at before steps double
    NEAR = 16  # a batch of no more rows for a key has the next key near
    FAR = 64  # a key that is so many rows from where it would be is not spread evenly


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


cdef inline Py_ssize_t gallop(
    const int64_t *rows,
    Py_ssize_t begin,
    Py_ssize_t n,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    bint after,
) noexcept nogil:
    """What `seek` finds, by steps that double, and halves of the last: near rows in few steps.

    The first few are looked at one by one, as most are there: a processor that guesses how a loop
    goes on is wrong once then, and by halves each time.
    """
    cdef Py_ssize_t low = begin, step = 1
    cdef int before = 1 if after else 0
    while low < n and low < begin + ONE_BY_ONE:
        if compare(rows + low * width, key, n_key) >= before:
            return low
        low += 1
    while low + step <= n and compare(rows + (low + step - 1) * width, key, n_key) < before:
        low += step
        step *= 2
    return halve(rows, low, min(low + step - 1, n), width, key, n_key, before)


cdef inline Py_ssize_t seek_near(
    const int64_t *rows,
    Py_ssize_t begin,
    Py_ssize_t n,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    bint after,
    Py_ssize_t at,
) noexcept nogil:
    """What `seek` finds, by steps from a row to either side, that double."""
    cdef Py_ssize_t high = at, step = 1
    cdef int before = 1 if after else 0
    if at <= begin:
        return gallop(rows, begin, n, width, key, n_key, after)
    if compare(rows + at * width, key, n_key) < before:
        return gallop(rows, at + 1, n, width, key, n_key, after)
    # It is before that row, or is it.
    while high > begin and high > at - ONE_BY_ONE:
        if compare(rows + (high - 1) * width, key, n_key) < before:
            return high
        high -= 1
    while high - step > begin and compare(rows + (high - step) * width, key, n_key) >= before:
        high -= step
        step *= 2
    return halve(rows, max(high - step, begin), high, width, key, n_key, before)


cdef inline double rows_by_word(const int64_t *rows, Py_ssize_t n, Py_ssize_t width) noexcept nogil:
    """How many rows there are for each number from the first of first words to the last."""
    cdef double first = <double>rows[0], last = <double>rows[(n - 1) * width]
    return <double>(n - 1) / (last - first) if last > first else 0.0


cdef inline Py_ssize_t nearer(
    const int64_t *rows, Py_ssize_t n, Py_ssize_t width, double by_word, int64_t word, Py_ssize_t at
) noexcept nogil:
    """Where a first word would be as seen from a row, if those were spread evenly from there on.

    Of n rows at random it is off by the root of n at most times, and from there by the root of
    that.
    """
    cdef double to = at + (<double>word - <double>rows[at * width]) * by_word
    if to <= 0.0:
        return 0
    return <Py_ssize_t>to if to < <double>(n - 1) else n - 1


cdef inline Py_ssize_t place(
    const int64_t *rows, Py_ssize_t n, Py_ssize_t width, int64_t word, int n_steps
) noexcept nogil:
    """Where a first word would be after so many steps."""
    cdef double by_word = rows_by_word(rows, n, width)
    cdef Py_ssize_t at = 0
    cdef int step
    for step in range(n_steps):
        at = nearer(rows, n, width, by_word, word, at)
    return at


cdef inline Py_ssize_t seek(
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
    cdef Py_ssize_t at = begin
    if n - begin > EVENLY:
        at = place(rows, n, width, key[0], STEPS)
    return seek_near(rows, begin, n, width, key, n_key, after, at)


cdef struct Searched:
    # Rows in which some keys are looked for in order; `places` is where the next `BLOCK` of them
    # would be, or NULL where each is near the one before.
    const int64_t *rows
    Py_ssize_t n
    Py_ssize_t width
    double by_word
    Py_ssize_t *places
    bint is_uneven  # whether keys are far from where they would be if they were spread evenly


cdef inline void begin_search(
    Searched *batch,
    const int64_t *rows,
    Py_ssize_t n,
    Py_ssize_t width,
    Py_ssize_t n_keys,
    Py_ssize_t *places,
) noexcept nogil:
    """Have so many keys looked for in some rows; there is room for `places`."""
    batch.rows, batch.n, batch.width = rows, n, width
    batch.places = NULL
    batch.is_uneven = False
    if n > EVENLY and n > NEAR * n_keys:
        batch.by_word = rows_by_word(rows, n, width)
        batch.places = places


cdef inline void look_ahead(
    Searched *batches, Py_ssize_t n_batches, const int64_t *keys, Py_ssize_t n_keys,
    Py_ssize_t width
) noexcept nogil:
    """Find where some keys would be: a step for all keys and batches, and then the next one.

    So it waits for memory three times, and not so often for each key and batch. Where a quarter of
    the keys are not near then, the range of each is halved instead, of all keys at the same time.
    """
    cdef Py_ssize_t i, b, n_far, off
    cdef int step
    cdef Searched *batch
    for step in range(STEPS):
        for b in range(n_batches):
            batch = batches + b
            if batch.places == NULL or batch.is_uneven:
                continue
            for i in range(n_keys):
                batch.places[i] = nearer(
                    batch.rows, batch.n, batch.width, batch.by_word, keys[i * width],
                    batch.places[i] if step else 0,
                )
                prefetch(batch.rows + batch.places[i] * batch.width)
                if step == STEPS - 1:
                    # The row before is looked at, too.
                    prefetch(batch.rows + (batch.places[i] - 1) * batch.width)


    for b in range(n_batches):
        batch = batches + b
        if batch.places == NULL:
            continue
        n_far = 0
        for i in range(0 if batch.is_uneven else n_keys):
            off = batch.places[i] - nearer(
                batch.rows, batch.n, batch.width, batch.by_word, keys[i * width], batch.places[i]
            )
            n_far += off > FAR or off < -FAR
        if 4 * n_far > n_keys:
            batch.is_uneven = True
        if batch.is_uneven:
            halve_all(batch, keys, n_keys, width)


cdef inline void halve_all(
    Searched *batch, const int64_t *keys, Py_ssize_t n_keys, Py_ssize_t width
) noexcept nogil:
    """Find the first row whose first word is not before that of each key, of all keys together.

    All ranges are of one length, so that all are halved at once, and memory is asked for in
    between.
    """
    cdef Py_ssize_t length = batch.n, half, i, next_half
    cdef const int64_t *rows = batch.rows
    for i in range(n_keys):
        batch.places[i] = 0
    while length > 1:
        half = length // 2
        length -= half
        next_half = length // 2
        for i in range(n_keys):
            if rows[(batch.places[i] + half - 1) * batch.width] < keys[i * width]:
                batch.places[i] += half
            if next_half:
                prefetch(rows + (batch.places[i] + next_half - 1) * batch.width)


cdef inline Py_ssize_t seek_ahead(
    const Searched *batch, Py_ssize_t begin, const int64_t *key, Py_ssize_t n_key, Py_ssize_t number
) noexcept nogil:
    """What `seek` finds for the key of that number among those that were looked ahead for."""
    return seek_near(
        batch.rows, begin, batch.n, batch.width, key, n_key, False,
        batch.places[number] if batch.places != NULL else begin,
    )
