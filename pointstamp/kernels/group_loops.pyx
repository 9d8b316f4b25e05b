"""Groups with sums, looked up by hash; and rows by the hash of their first words.

What each does, and of which shapes, is said by its plain twin in `group_sums` and `group_states`.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

import numpy as np

from pointstamp.kernels.arrays cimport Table, import_arrays, look_at, new_rows
from pointstamp.kernels.update_loops cimport Rows, compare, copy, hash_row, next_there
from pointstamp.kernels.update_searches cimport seek

import_arrays()

# Not looked up in each call.
cdef object empty = np.empty, int64 = np.dtype("int64")

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t *) noexcept nogil
    void __builtin_prefetch(const void *) noexcept nogil

cdef extern from *:
    """
    /* A sum of 128 bits, the lower half first. */
    static inline __int128 wide_sum(const int64_t *words) {
        return (__int128)(((unsigned __int128)(uint64_t)words[1] << 64) | (uint64_t)words[0]);
    }
    static inline int add_product(int64_t *words, int64_t value, int64_t diff) {
        __int128 total;
        if (__builtin_add_overflow(wide_sum(words), (__int128)value * diff, &total)) return 1;
        words[0] = (int64_t)total;
        words[1] = (int64_t)(total >> 64);
        return 0;
    }
    """
    bint add_product(int64_t *words, int64_t value, int64_t diff) noexcept nogil

cdef extern from *:
    """
    #define EXACT_FLOAT (1LL << 53)
    #define MANY_RECORDS (1LL << 32)
    #define LOWER 0xFFFFFFFFULL
    #define UPPER 0xFFFFFFFF00000000ULL
    """
    int64_t EXACT_FLOAT
    int64_t MANY_RECORDS
    uint64_t LOWER
    uint64_t UPPER

cdef enum:
    RECORDS = 0
    VALUES = 1
    SUM = 2
    AVERAGE = 3
    FIRST = 4
    MOST_BATCHES = 64  # how many are read side by side
    PLAN = 5  # numbers for each answer
    BLOCK = 32  # so many rows are looked up side by side
    LEAST_ROOM = 16
    LOOK = 2  # what the first value is has to be looked for


cdef inline Py_ssize_t n_words_of(int64_t form) noexcept nogil:
    """How many words of a group's state an answer has."""
    return 0 if form == RECORDS else 1 if form == VALUES else 2 if form == FIRST else 3


cdef class GroupSums:
    # A group is a row of `kept`: the words of its key; 0, or while it is touched 1 more than its
    # place among those that are; how many records it has; and behind that, of each answer, how
    # many values, and a sum of two words. Of a first value: whether it is known, or LOOK, and
    # before which one there is none.
    # A slot is 0, or the number of a group and 1 more, below the upper half of its hash.
    cdef int64_t *kept
    cdef uint64_t *slots
    cdef int64_t *plan
    cdef int64_t *before
    cdef Py_ssize_t n
    cdef Py_ssize_t room
    cdef uint64_t mask
    cdef Py_ssize_t n_key
    cdef Py_ssize_t n_words
    cdef Py_ssize_t n_answers
    cdef Py_ssize_t n_state
    cdef Py_ssize_t width
    cdef Py_ssize_t answer_width
    cdef Py_ssize_t n_touched
    cdef Py_ssize_t before_room
    cdef readonly Py_ssize_t n_passed
    cdef Py_ssize_t failed_group
    cdef Py_ssize_t failed_place

    def __cinit__(self, Py_ssize_t n_key, Py_ssize_t n_words, const int64_t[:, ::1] plan):
        cdef Py_ssize_t i, form
        if plan.shape[1] != PLAN:
            raise ValueError(f"a plan has {PLAN} numbers for each answer, and not {plan.shape[1]}")
        self.n_key = n_key
        self.n_words = n_words
        self.n_answers = plan.shape[0]
        self.plan = <int64_t *>malloc(max(1, plan.shape[0] * PLAN) * sizeof(int64_t))
        if self.plan == NULL:
            raise MemoryError
        self.n_state = 1
        self.answer_width = n_key + 1
        for i in range(plan.shape[0]):
            copy(self.plan + i * PLAN, &plan[i, 0], PLAN)
            form = plan[i, 0]
            self.n_state += n_words_of(form)
            self.answer_width += 2 if plan[i, 3] else 1
        self.width = n_key + 1 + self.n_state
        if self.resize(LEAST_ROOM) < 0:
            raise MemoryError

    def __dealloc__(self):
        free(self.kept)
        free(self.slots)
        free(self.plan)
        free(self.before)

    def __len__(self):
        return self.n

    def update(self, list parts, list values=[]):
        cdef Table part
        cdef Py_ssize_t place, n_first = 0
        cdef int status = 0
        for rows in parts:
            look_at(rows, &part)
            if part.width != self.n_words + 1:
                raise ValueError(
                    f"updates of groups have {self.n_words} words, and not {part.width - 1}"
                )
        self.n_touched = 0
        for rows in parts:
            look_at(rows, &part)
            if part.n and status == 0:
                with nogil:
                    status = self.add(part.rows, part.n)
        if status < 0:
            raise MemoryError
        if status == 0:
            for place in range(self.n_answers):
                if self.plan[place * PLAN] == FIRST:
                    self.look(place, values[n_first])
                    n_first += 1
        array = new_rows(2 * self.n_touched, self.answer_width)
        if status == 0 and self.n_touched:
            look_at(array, &part)
            place = self.answer_touched(<int64_t *>part.rows)
            array = array[:max(place, 0)]
            status = place < 0
        if status:
            self.refuse()
        return array

    def dump(self):
        cdef Py_ssize_t group
        cdef int64_t *row
        if self.forget_empty() < 0:
            raise MemoryError
        array = new_rows(self.n, self.n_key + self.n_state)
        cdef int64_t[:, ::1] into = array
        for group in range(self.n):
            row = self.kept + group * self.width
            copy(&into[group, 0], row, self.n_key)
            copy(&into[group, self.n_key], row + self.n_key + 1, self.n_state)
        return array

    def load(self, const int64_t[:, ::1] rows):
        cdef Py_ssize_t i, n = rows.shape[0]
        cdef int64_t *row
        if rows.shape[1] != self.n_key + self.n_state:
            raise ValueError(
                f"groups have {self.n_key + self.n_state} words, and not {rows.shape[1]}"
            )
        if self.resize(max(self.n + n, <Py_ssize_t>LEAST_ROOM)) < 0:
            raise MemoryError
        for i in range(n):
            row = self.kept + self.n * self.width
            copy(row, &rows[i, 0], self.n_key)
            row[self.n_key] = 0
            copy(row + self.n_key + 1, &rows[i, self.n_key], self.n_state)
            self.n += 1
        if self.resize(self.room) < 0:
            raise MemoryError

    cdef refuse(self):
        """Raise for the sum that failed."""
        from pointstamp.kernels.group_sums import SumOverflow

        cdef int64_t *group = self.kept + self.failed_group * self.width
        cdef int64_t *sums = self.state_of(self.failed_place, group + self.n_key + 1)
        key = [group[k] for k in range(self.n_key)]
        if self.failed_place < 0:
            raise SumOverflow(-1, group[self.n_key + 1], key)
        raise SumOverflow(self.failed_place, (<object>sums[2] << 64) + <uint64_t>sums[1], key)

    cdef int64_t *state_of(self, Py_ssize_t place, int64_t *state) noexcept nogil:
        """Where the values and the sum of an answer are."""
        cdef Py_ssize_t i, at = 1
        for i in range(place):
            at += n_words_of(self.plan[i * PLAN])
        return state + at

    cdef int resize(self, Py_ssize_t room) noexcept nogil:
        """Have room for so many groups; -1 if there is no memory for them."""
        cdef uint64_t n_slots = 32
        cdef int64_t *kept = <int64_t *>realloc(self.kept, room * self.width * sizeof(int64_t))
        if kept == NULL:
            return -1
        self.kept = kept
        while n_slots < <uint64_t>(2 * room):
            n_slots *= 2
        free(self.slots)
        self.slots = <uint64_t *>calloc(n_slots, sizeof(uint64_t))
        if self.slots == NULL:
            return -1
        self.mask = n_slots - 1
        self.room = room
        self.enter_all()
        return 0

    cdef void enter_all(self) noexcept nogil:
        """Give each group a slot; all slots are empty."""
        cdef Py_ssize_t group
        cdef uint64_t hash, slot
        for group in range(self.n):
            hash = hash_row(self.kept + group * self.width, self.n_key)
            slot = hash & self.mask
            while self.slots[slot] != 0:
                slot = (slot + 1) & self.mask
            self.slots[slot] = (hash & UPPER) | <uint64_t>(group + 1)

    cdef int make_room(self, Py_ssize_t n) noexcept nogil:
        """Have room for `n` more groups; a moment to forget what is empty."""
        if self.forget_empty() < 0:
            return -1
        while self.n + n > self.room:
            if self.resize(2 * self.room) < 0:
                return -1
        return 0

    cdef int forget_empty(self) noexcept nogil:
        """Number groups anew if half of them are empty."""
        cdef Py_ssize_t group, n_left = 0
        cdef int64_t *row
        cdef int64_t touched
        for group in range(self.n):
            n_left += not self.is_empty(group)
        if 2 * (self.n - n_left) <= self.n:
            return 0
        n_left = 0
        for group in range(self.n):
            if not self.is_empty(group):
                row = self.kept + n_left * self.width
                memmove(row, self.kept + group * self.width, self.width * sizeof(int64_t))
                touched = row[self.n_key]
                if touched:
                    self.before[(touched - 1) * (self.n_state + 1)] = n_left
                n_left += 1
        self.n = n_left
        return self.resize(max(2 * n_left, <Py_ssize_t>LEAST_ROOM))

    cdef bint is_empty(self, Py_ssize_t group) noexcept nogil:
        """Whether nothing of it is left, and it is not touched."""
        cdef int64_t *state = self.kept + group * self.width + self.n_key
        cdef Py_ssize_t k
        for k in range(self.n_state + 1):
            if state[k] != 0:
                return False
        return True

    cdef int add(self, const int64_t *rows, Py_ssize_t n) noexcept nogil:
        """Take in rows; -1 if there is no memory, 1 if a sum is beyond what is kept."""
        cdef uint64_t hashes[BLOCK]
        cdef uint64_t slot
        cdef Py_ssize_t begin, n_block, i, group, row_width = self.n_words + 1
        begin = 0
        while begin < n:
            n_block = min(n - begin, <Py_ssize_t>BLOCK)
            if self.n + n_block > self.room and self.make_room(n_block) < 0:
                return -1
            if self.n_touched + n_block > self.before_room and self.grow_before() < 0:
                return -1
            # What is in no cache is asked for before it is needed, a block of rows at a time.
            for i in range(n_block):
                hashes[i] = hash_row(rows + (begin + i) * row_width, self.n_key)
                __builtin_prefetch(&self.slots[hashes[i] & self.mask])
            if n_block > 1:
                for i in range(n_block):
                    slot = self.slots[hashes[i] & self.mask]
                    if slot:
                        group = <Py_ssize_t>(slot & LOWER) - 1
                        __builtin_prefetch(self.kept + group * self.width)
            for i in range(n_block):
                if self.add_row(rows + (begin + i) * row_width, hashes[i]) < 0:
                    return 1
            begin += n_block
        return 0

    cdef int grow_before(self) noexcept nogil:
        cdef Py_ssize_t room = 2 * self.before_room + BLOCK
        cdef int64_t *larger = <int64_t *>realloc(
            self.before, room * (self.n_state + 1) * sizeof(int64_t)
        )
        if larger == NULL:
            return -1
        self.before = larger
        self.before_room = room
        return 0

    cdef int add_row(self, const int64_t *row, uint64_t hash) noexcept nogil:
        """Take in a row; -1 if a sum is beyond what is kept."""
        cdef uint64_t slot = hash & self.mask, tag = hash & UPPER
        cdef Py_ssize_t group = -1, k, i
        cdef int64_t *state
        cdef int64_t *plan
        cdef int64_t value, diff = row[self.n_words]
        while self.slots[slot] != 0:
            if (self.slots[slot] & UPPER) == tag:
                group = <Py_ssize_t>(self.slots[slot] & LOWER) - 1
                if compare(self.kept + group * self.width, row, self.n_key) == 0:
                    break
                group = -1
            slot = (slot + 1) & self.mask
        if group < 0:
            group = self.n
            copy(self.kept + group * self.width, row, self.n_key)
            for k in range(self.n_key, self.width):
                self.kept[group * self.width + k] = 0
            self.n += 1
            self.slots[slot] = tag | <uint64_t>self.n
        state = self.kept + group * self.width + self.n_key
        if state[0] == 0:
            self.before[self.n_touched * (self.n_state + 1)] = group
            copy(self.before + self.n_touched * (self.n_state + 1) + 1, state + 1, self.n_state)
            self.n_touched += 1
            state[0] = self.n_touched
        state += 1
        self.failed_group = group
        self.failed_place = -1
        if __builtin_add_overflow(state[0], diff, &state[0]):
            return -1
        state += 1
        for i in range(self.n_answers):
            plan = self.plan + i * PLAN
            if plan[0] == RECORDS:
                continue
            if plan[0] == FIRST:
                if plan[2] < 0 or row[plan[2]] != 0:
                    value = row[plan[1]] ^ plan[4]
                    # Behind the first one nothing changes what is the first.
                    if state[0] == 0 or value <= state[1]:
                        state[0] = LOOK
                        state[1] = value
                state += 2
                continue
            if plan[2] < 0 or row[plan[2]] != 0:
                if __builtin_add_overflow(state[0], diff, &state[0]):
                    return -1
                if plan[0] != VALUES and add_product(state + 1, row[plan[1]], diff):
                    self.failed_place = i
                    return -1
            state += 1 if plan[0] == VALUES else 3
        return 0

    cdef look(self, Py_ssize_t place, list values):
        """Look for the first values of an answer where it may be another one.

        values : batches of consolidated rows: a key, a value, a diff
        """
        cdef const int64_t *data[MOST_BATCHES]
        cdef Py_ssize_t size[MOST_BATCHES]
        cdef Py_ssize_t at[MOST_BATCHES]
        cdef Py_ssize_t n_batches = len(values), width = self.n_key + 2, b, i
        cdef int64_t *group
        cdef int64_t *state
        cdef Rows view
        if n_batches > MOST_BATCHES:
            raise ValueError(f"{n_batches} batches, where at most {MOST_BATCHES} are read at a time")
        for b in range(n_batches):
            view = values[b]
            data[b] = &view[0, 0] if view.shape[0] else NULL
            size[b] = view.shape[0]
        row_array = empty(width, int64)
        cdef int64_t[::1] row = row_array
        with nogil:
            for i in range(self.n_touched):
                group = self.kept + self.before[i * (self.n_state + 1)] * self.width
                state = self.state_of(place, group + self.n_key + 1)
                if state[0] != LOOK:
                    continue
                copy(&row[0], group, self.n_key)
                row[self.n_key] = state[1]
                for b in range(n_batches):
                    at[b] = seek(data[b], 0, size[b], width, &row[0], self.n_key + 1, False)
                    self.n_passed -= at[b]
                if next_there(data, size, at, n_batches, width, group, self.n_key, &row[0]):
                    state[0] = 1
                    state[1] = row[self.n_key]
                else:
                    state[0] = state[1] = 0
                for b in range(n_batches):
                    self.n_passed += at[b]

    cdef Py_ssize_t answer_touched(self, int64_t *changes) except -2:
        """Write how the rows of groups change; how many changes, or -1 if a sum is refused.

        changes : room for two rows of each group that was touched
        """
        cdef Py_ssize_t i, n = 0, n_rows, group, width = self.answer_width
        cdef int64_t *before
        cdef int64_t *state
        cdef int64_t *one
        cdef int64_t *other
        cdef bint was, is_
        with nogil:
            for i in range(self.n_touched):
                before = self.before + i * (self.n_state + 1)
                group = before[0]
                before += 1
                state = self.kept + group * self.width + self.n_key
                state[0] = 0
                state += 1
                was, is_ = before[0] > 0, state[0] > 0
                one = changes + n * width
                other = one + (width if was else 0)
                if was:
                    self.answer(group, before, one)
                    one[width - 1] = -1
                if is_:
                    if self.answer(group, state, other) < 0:
                        self.failed_group = group
                        n = -1
                        break
                    other[width - 1] = 1
                if not (was and is_ and compare(one, other, width - 1) == 0):
                    n += was + is_
        return n

    cdef int answer(self, Py_ssize_t group, int64_t *state, int64_t *row) noexcept nogil:
        """Write the key of a group, and what its sums say; -1 if one is refused."""
        cdef Py_ssize_t i
        cdef int64_t *plan
        cdef int64_t word = 0
        cdef bint there
        copy(row, self.kept + group * self.width, self.n_key)
        row += self.n_key
        cdef int64_t n_records = state[0]
        state += 1
        for i in range(self.n_answers):
            plan = self.plan + i * PLAN
            there = True
            if plan[0] == RECORDS:
                word = n_records
            elif plan[0] == VALUES:
                word = state[0]
                state += 1
            elif plan[0] == FIRST:
                there = state[0] != 0
                word = state[1] ^ plan[4]
                state += 2
            else:
                there = state[0] != 0
                if there:
                    if plan[0] == SUM:
                        word = state[1]
                        if (
                            state[2] != (state[1] >> 63)
                            or (plan[4] and (word >= plan[4] or word <= -plan[4]))
                        ):
                            self.failed_place = i
                            return -1
                    else:
                        word = self.average(state, plan[4])
                state += 3
            if plan[3]:
                row[0] = there
                row += 1
            row[0] = word if there else 0
            row += 1
        return 0

    cdef int64_t average(self, int64_t *state, int64_t unit) noexcept nogil:
        """The word of the nearest float."""
        cdef double mean
        cdef int64_t word = state[1]
        if (
            state[2] == (word >> 63) and -EXACT_FLOAT < word < EXACT_FLOAT
            and unit <= 1000000 and -MANY_RECORDS < state[0] < MANY_RECORDS
        ):
            # Both are floats as they are, so their quotient is rounded once.
            mean = <double>word / <double>(state[0] * unit)
        else:
            with gil:
                total = ((<object>state[2]) << 64) + <uint64_t>word
                mean = total / (<object>state[0] * <object>unit)
        mean += 0.0
        memcpy(&word, &mean, sizeof(double))
        return word if word >= 0 else word ^ <int64_t>0x7FFFFFFFFFFFFFFF


def hash_words(Rows rows, int n_key):
    cdef Py_ssize_t i, n = rows.shape[0]
    array = empty(n, np.uint64)
    cdef uint64_t[::1] hashes = array
    with nogil:
        for i in range(n):
            hashes[i] = hash_row(&rows[i, 0], n_key)
    return array


def split_rows(rows, int n_key, Py_ssize_t n_parts):
    cdef Table table, part
    cdef Py_ssize_t i, p
    cdef int32_t *part_of = NULL
    cdef Py_ssize_t *counts = NULL
    cdef int64_t **targets = NULL
    look_at(rows, &table)
    parts = []
    try:
        part_of = <int32_t *>malloc((table.n + 1) * sizeof(int32_t))
        counts = <Py_ssize_t *>calloc(n_parts, sizeof(Py_ssize_t))
        targets = <int64_t **>malloc(n_parts * sizeof(int64_t *))
        if part_of == NULL or counts == NULL or targets == NULL:
            raise MemoryError
        with nogil:
            for i in range(table.n):
                p = hash_row(table.rows + i * table.width, n_key) % <uint64_t>n_parts
                part_of[i] = p
                counts[p] += 1
        for p in range(n_parts):
            array = new_rows(counts[p], table.width)
            look_at(array, &part)
            targets[p] = <int64_t *>part.rows
            parts.append(array)
        with nogil:
            for i in range(table.n):
                p = part_of[i]
                copy(targets[p], table.rows + i * table.width, table.width)
                targets[p] += table.width
    finally:
        free(part_of)
        free(counts)
        free(targets)
    return parts


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
