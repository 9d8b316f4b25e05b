"""Loops over prefixes: rows of words and a diff that are extended by values of relations.

What each function does, and of which shapes, is said by its plain twin, of the same name in
`extensions`.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

from pointstamp.kernels.update_loops cimport Rows, compare, copy
from pointstamp.kernels.update_searches cimport (
    BLOCK,
    Searched,
    begin_search,
    gallop,
    look_ahead,
    seek,
    seek_ahead,
)

# Not looked up in each call.
cdef object empty = np.empty, int64 = np.dtype("int64")

cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_sub_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t *) noexcept nogil

cdef enum:
    NO_MEMORY = -1
    SUM_OVERFLOW = -2
    PRODUCT_OVERFLOW = -3
    MANY = 16  # so many prefixes are looked for together

cdef struct Batch:
    # Rows of a relation, and where those of the present prefix begin, go on and end.
    const int64_t *rows
    Py_ssize_t n
    Py_ssize_t width
    Py_ssize_t begin
    Py_ssize_t at
    Py_ssize_t end

cdef struct Relation:
    # Its batches are those from `first` up to `last`; of the present prefix there are rows in
    # `n_there` of them.
    Py_ssize_t first
    Py_ssize_t last
    Py_ssize_t n_there
    Batch **there
    Py_ssize_t n_key
    const int32_t *places
    int64_t *key  # of the present prefix
    bint is_known  # whether there was one before
    # Where `BLOCK` prefixes are looked for together: its batches, and which of the distinct first
    # words each prefix has.
    Searched *sides
    unsigned char *numbers


cdef class Relations:
    """The relations of a call, in C's memory."""

    cdef Relation *relations
    cdef Batch *batches
    cdef Batch **there
    cdef int64_t *keys
    cdef Searched *sides
    cdef Py_ssize_t *found
    cdef unsigned char *numbers
    cdef Py_ssize_t n
    cdef list kept

    def __cinit__(
        self, list relations, list places, Py_ssize_t n_words, Py_ssize_t n_values,
        Py_ssize_t n_prefixes,
    ):
        cdef Py_ssize_t n_batches = 0, n_keys = 0, r = 0, b = 0, k
        cdef Rows rows
        cdef const int32_t[::1] at
        if len(relations) != len(places) or not places:
            raise ValueError(f"{len(relations)} relations, and {len(places)} places of keys")
        for batches in relations:
            n_batches += len(batches)
        for words in places:
            n_keys += len(words)
        self.n = len(relations)
        self.kept = [relations, places]
        self.relations = <Relation *>calloc(self.n + 1, sizeof(Relation))
        self.batches = <Batch *>calloc(n_batches + 1, sizeof(Batch))
        self.there = <Batch **>calloc(n_batches + 1, sizeof(Batch *))
        self.keys = <int64_t *>calloc(n_keys + 1, sizeof(int64_t))
        if self.relations == NULL or self.batches == NULL or self.there == NULL or (
            self.keys == NULL
        ):
            raise MemoryError
        if n_prefixes >= MANY:
            self.sides = <Searched *>calloc(n_batches + 1, sizeof(Searched))
            self.found = <Py_ssize_t *>malloc((n_batches + 1) * BLOCK * sizeof(Py_ssize_t))
            self.numbers = <unsigned char *>malloc(self.n * BLOCK)
            if self.sides == NULL or self.found == NULL or self.numbers == NULL:
                raise MemoryError
        n_keys = 0
        for r in range(self.n):
            at = places[r]
            self.relations[r].first = b
            self.relations[r].there = self.there + b
            self.relations[r].n_key = at.shape[0]
            self.relations[r].places = &at[0] if at.shape[0] else NULL
            self.relations[r].key = self.keys + n_keys
            n_keys += at.shape[0]
            if self.sides != NULL and at.shape[0]:
                self.relations[r].sides = self.sides + b
                self.relations[r].numbers = self.numbers + r * BLOCK
            for k in range(at.shape[0]):
                if not 0 <= at[k] < n_words:
                    raise ValueError(f"place {at[k]} of prefixes of {n_words} words")
            for batch in relations[r]:
                rows = batch
                if rows.shape[1] != at.shape[0] + n_values + 1:
                    raise ValueError(
                        f"rows of {rows.shape[1]} words, for a key of {at.shape[0]}, "
                        f"{n_values} of a value, and a diff"
                    )
                if rows.shape[0]:
                    self.batches[b].rows = &rows[0, 0]
                    self.batches[b].n = rows.shape[0]
                    self.batches[b].width = rows.shape[1]
                    if self.sides != NULL:
                        begin_search(
                            self.sides + b, &rows[0, 0], rows.shape[0], rows.shape[1], n_prefixes,
                            self.found + b * BLOCK,
                        )
                    b += 1
            self.relations[r].last = b

    def __dealloc__(self):
        free(self.relations)
        free(self.batches)
        free(self.there)
        free(self.keys)
        free(self.sides)
        free(self.found)
        free(self.numbers)


cdef inline void look(
    Relation *relations, Py_ssize_t n, const int64_t *prefixes, Py_ssize_t n_prefixes,
    Py_ssize_t width
) noexcept nogil:
    """Look ahead for the first word that each relation is asked for by the next prefixes."""
    cdef int64_t words[BLOCK]
    cdef Py_ssize_t r, i, n_words
    cdef int64_t word
    cdef Relation *relation
    for r in range(n):
        relation = relations + r
        if relation.sides == NULL:
            continue
        n_words = 0
        for i in range(n_prefixes):
            word = prefixes[i * width + relation.places[0]]
            if n_words == 0 or word != words[n_words - 1]:
                words[n_words] = word
                n_words += 1
            relation.numbers[i] = <unsigned char>(n_words - 1)
        look_ahead(relation.sides, relation.last - relation.first, words, n_words, 1)


cdef Py_ssize_t find(
    Relation *relation, Batch *batches, const int64_t *prefix, Py_ssize_t number
) noexcept nogil:
    """Find the rows of a prefix in all batches of a relation; how many there are.

    number : of the prefix among those that were looked ahead for
    """
    cdef Py_ssize_t total = 0, b, k, n_key = relation.n_key
    cdef int order = 1
    cdef int64_t word
    cdef Batch *batch
    if relation.is_known:
        # The key before is in place: from where it was found, if this one is behind it.
        order = 0
        for k in range(n_key):
            word = prefix[relation.places[k]]
            if word != relation.key[k]:
                order = 1 if word > relation.key[k] else -1
                break
    for k in range(n_key):
        relation.key[k] = prefix[relation.places[k]]
    relation.n_there = 0
    for b in range(relation.first, relation.last):
        batch = batches + b
        if order or not relation.is_known:
            if order < 0 or not relation.is_known:
                batch.begin = 0
            if relation.sides != NULL and relation.sides[b - relation.first].places != NULL:
                batch.begin = seek_ahead(
                    relation.sides + (b - relation.first), batch.begin, relation.key, n_key,
                    relation.numbers[number],
                )
            else:
                batch.begin = seek(
                    batch.rows, batch.begin, batch.n, batch.width, relation.key, n_key, False
                )
            batch.end = gallop(
                batch.rows, batch.begin, batch.n, batch.width, relation.key, n_key, True
            )
        batch.at = batch.begin
        if batch.begin < batch.end:
            relation.there[relation.n_there] = batch
            relation.n_there += 1
            total += batch.end - batch.begin
    relation.is_known = True
    return total


cdef inline int sum_at(Relation *relation, int64_t value, int64_t *sum) noexcept nogil:
    """The sum of the diffs of a value, and the batches advanced to it; below 0 on overflow."""
    cdef Py_ssize_t b, n_key = relation.n_key
    cdef Batch *batch
    cdef const int64_t *row
    sum[0] = 0
    for b in range(relation.n_there):
        batch = relation.there[b]
        row = batch.rows + batch.at * batch.width + n_key
        if batch.at < batch.end and row[0] < value:
            # Values come in order, so that the next one is near at most times.
            batch.at += 1 + gallop(
                row + batch.width, 0, batch.end - batch.at - 1, batch.width, &value, 1, False
            )
            row = batch.rows + batch.at * batch.width + n_key
        if batch.at < batch.end and row[0] == value:
            if __builtin_add_overflow(sum[0], row[batch.width - 1 - n_key], sum):
                return SUM_OVERFLOW
    return 0


cdef inline int next_value(Relation *relation, int64_t *value, int64_t *sum) noexcept nogil:
    """The least value that is next in the batches, and the sum of its diffs; they go behind it.

    1 if there is one, 0 if there is none, and below 0 on overflow.
    """
    cdef Py_ssize_t b, n_key = relation.n_key
    cdef Batch *batch
    cdef const int64_t *row
    cdef bint is_there = False
    for b in range(relation.n_there):
        batch = relation.there[b]
        if batch.at < batch.end:
            row = batch.rows + batch.at * batch.width + n_key
            if not is_there or row[0] < value[0]:
                value[0] = row[0]
                is_there = True
    sum[0] = 0
    for b in range(relation.n_there if is_there else 0):
        batch = relation.there[b]
        row = batch.rows + batch.at * batch.width + n_key
        if batch.at < batch.end and row[0] == value[0]:
            if __builtin_add_overflow(sum[0], row[batch.width - 1 - n_key], sum):
                return SUM_OVERFLOW
            batch.at += 1
    return is_there


def list_sizes(Rows prefixes, list relations, list places):
    cdef Py_ssize_t n = prefixes.shape[0], width = prefixes.shape[1], i, r, size
    cdef Relations given = Relations(relations, places, prefixes.shape[1] - 1, 1, n)
    array = empty(n, int64)
    cdef int64_t[::1] sizes = array
    with nogil:
        for i in range(n):
            if i % BLOCK == 0:
                look(given.relations, given.n, &prefixes[i, 0], min(BLOCK, n - i), width)
            for r in range(given.n):
                size = find(given.relations + r, given.batches, &prefixes[i, 0], i % BLOCK)
                if r == 0 or size < sizes[i]:
                    sizes[i] = size
    return array


def extend(
    Rows prefixes, list relations, list places, Py_ssize_t begin=0,
    Py_ssize_t most=PY_SSIZE_T_MAX,
):
    cdef Py_ssize_t n = prefixes.shape[0], width = prefixes.shape[1], i, r, size, least, chosen
    cdef Py_ssize_t n_made = 0, room = 0, first = begin
    cdef Relations given = Relations(relations, places, width - 1, 1, n - begin)
    cdef int64_t *made = NULL
    cdef int64_t *larger
    cdef int64_t value = 0, diff, total, n_here
    cdef int status = 0
    with nogil:
        for i in range(begin, n):
            if n_made >= most:
                break
            if (i - first) % BLOCK == 0:
                look(given.relations, given.n, &prefixes[i, 0], min(BLOCK, n - i), width)
            begin = i + 1
            least = chosen = 0
            for r in range(given.n):
                size = find(
                    given.relations + r, given.batches, &prefixes[i, 0], (i - first) % BLOCK
                )
                if r == 0 or size < least:
                    least = size
                    chosen = r
                if size == 0:
                    break
            if least == 0:
                continue
            while True:
                status = next_value(given.relations + chosen, &value, &total)
                if status <= 0:
                    break
                status = 0
                diff = prefixes[i, width - 1]
                for r in range(given.n):
                    n_here = total
                    if r != chosen:
                        status = sum_at(given.relations + r, value, &n_here)
                    if status < 0 or n_here == 0:
                        diff = 0
                        break
                    if __builtin_mul_overflow(diff, n_here, &diff):
                        status = PRODUCT_OVERFLOW
                        break
                if status < 0:
                    break
                if diff == 0:
                    continue
                if n_made == room:
                    room = 2 * room + 16
                    larger = <int64_t *>realloc(made, room * (width + 1) * sizeof(int64_t))
                    if larger == NULL:
                        status = NO_MEMORY
                        break
                    made = larger
                copy(made + n_made * (width + 1), &prefixes[i, 0], width - 1)
                made[n_made * (width + 1) + width - 1] = value
                made[n_made * (width + 1) + width] = diff
                n_made += 1
            if status < 0:
                break
    try:
        check(status)
        array = empty((n_made, width + 1), int64)
        if n_made:
            fill(array, made, n_made * (width + 1))
    finally:
        free(made)
    return array, begin


cdef int fill(int64_t[:, ::1] array, const int64_t *words, Py_ssize_t n) except -1:
    memcpy(&array[0, 0], words, n * sizeof(int64_t))
    return 0


def weigh(Rows prefixes, list batches, const int32_t[::1] places, bint absent):
    cdef Py_ssize_t n = prefixes.shape[0], width = prefixes.shape[1], i, b, n_made = 0
    cdef Relations given = Relations([batches], [places], width - 1, 0, n)
    cdef int64_t total, diff = 0
    cdef int status = 0
    cdef Batch *batch
    array = empty((n, width), int64)
    cdef int64_t[:, ::1] made = array
    with nogil:
        for i in range(n):
            if i % BLOCK == 0:
                look(given.relations, 1, &prefixes[i, 0], min(BLOCK, n - i), width)
            find(given.relations, given.batches, &prefixes[i, 0], i % BLOCK)
            total = 0
            for b in range(given.relations[0].first, given.relations[0].last):
                batch = given.batches + b
                if batch.begin < batch.end and __builtin_add_overflow(
                    total, batch.rows[batch.begin * batch.width + batch.width - 1], &total
                ):
                    status = SUM_OVERFLOW
            if absent and status == 0 and __builtin_sub_overflow(1, total, &total):
                status = PRODUCT_OVERFLOW
            if status == 0 and __builtin_mul_overflow(prefixes[i, width - 1], total, &diff):
                status = PRODUCT_OVERFLOW
            if status < 0:
                break
            if diff:
                copy(&made[n_made, 0], &prefixes[i, 0], width - 1)
                made[n_made, width - 1] = diff
                n_made += 1
    check(status)
    return array if n_made == n else array[:n_made]


cdef int check(int status) except -1:
    if status == NO_MEMORY:
        raise MemoryError
    if status == SUM_OVERFLOW:
        raise OverflowError("the sum of the diffs of two records is beyond 64 bits")
    if status == PRODUCT_OVERFLOW:
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    return 0
