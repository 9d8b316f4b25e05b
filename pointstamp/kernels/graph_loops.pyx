"""Loops over the edges of a graph, which is lists of places end to end.

What each function does, and of which types, is said by its plain twin, of the same name in
`reach`, `peel`, `votes`, `triads`, `sums` and `unionfind`.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

import numpy as np

ctypedef const int64_t[::1] Ints
ctypedef const int32_t[::1] Numbers


# A queue of places to look at, each in it once: a ring with one slot more than there are
# places, so that a full queue is distinguished from an empty one, and a flag for each place.


cdef inline Py_ssize_t fill(int32_t[::1] queue, uint8_t[::1] queued, Numbers places) noexcept nogil:
    """Put distinct places into an empty queue whose first is at 0; where the next one goes."""
    cdef Py_ssize_t i
    for i in range(places.shape[0]):
        queue[i] = places[i]
        queued[places[i]] = True
    return places.shape[0]


cdef inline Py_ssize_t after(Py_ssize_t at, Py_ssize_t room) noexcept nogil:
    return at + 1 if at + 1 < room else 0


cdef inline Py_ssize_t enqueue(
    int32_t[::1] queue, uint8_t[::1] queued, Py_ssize_t last, int32_t place
) noexcept nogil:
    """Put a place at the end unless it is in the queue; where the next one goes."""
    if queued[place]:
        return last
    queued[place] = True
    queue[last] = place
    return after(last, queue.shape[0])


cdef flagged(is_changed):
    return np.flatnonzero(is_changed).astype(np.int32)


def expand(Ints begins, Ints ends, Numbers others, Numbers fresh, int64_t[::1] levels, int64_t level):
    cdef Py_ssize_t i, j, n_found = 0
    cdef int32_t head
    array = np.empty(levels.shape[0], np.int32)
    cdef int32_t[::1] found = array
    with nogil:
        for i in range(fresh.shape[0]):
            for j in range(begins[fresh[i]], ends[fresh[i]]):
                head = others[j]
                if levels[head] < 0:
                    levels[head] = level
                    found[n_found] = head
                    n_found += 1
    return array[:n_found].copy()


def spread_least(
    Ints begins,
    Ints ends,
    Numbers others,
    int64_t[::1] labels,
    const uint8_t[::1] is_open,
    Numbers fresh,
    int32_t[::1] queue,
    uint8_t[::1] queued,
):
    cdef Py_ssize_t j, first = 0, last
    cdef int32_t place, head
    cdef int64_t label
    array = np.zeros(labels.shape[0], np.bool_)
    cdef uint8_t[::1] is_changed = array
    with nogil:
        last = fill(queue, queued, fresh)
        while first != last:
            place = queue[first]
            first = after(first, queue.shape[0])
            queued[place] = False
            label = labels[place]
            for j in range(begins[place], ends[place]):
                head = others[j]
                if label < labels[head] and is_open[head]:
                    labels[head] = label
                    is_changed[head] = True
                    last = enqueue(queue, queued, last, head)
    return flagged(array)


def reach_alike(
    Ints begins,
    Ints ends,
    Numbers others,
    Ints labels,
    uint8_t[::1] reached,
    Numbers fresh,
):
    cdef Py_ssize_t i, j, n_found = 0, n_stacked = fresh.shape[0]
    cdef int32_t place, head
    array = np.empty(labels.shape[0], np.int32)
    cdef int32_t[::1] found = array
    cdef int32_t[::1] stack = np.empty(labels.shape[0] + fresh.shape[0], np.int32)
    with nogil:
        for i in range(n_stacked):
            stack[i] = fresh[i]
        while n_stacked > 0:
            n_stacked -= 1
            place = stack[n_stacked]
            for j in range(begins[place], ends[place]):
                head = others[j]
                if not reached[head] and labels[head] == labels[place]:
                    reached[head] = True
                    found[n_found] = head
                    n_found += 1
                    stack[n_stacked] = head
                    n_stacked += 1
    return np.sort(array[:n_found])


# The shortest way: a heap of places by distance, in which each place knows its position,
# so that there is room for one entry each and no entry is out of date.


def shorten(
    Ints begins,
    Ints ends,
    Numbers others,
    const double[::1] weights,
    double[::1] distances,
    Numbers fresh,
    int32_t[::1] heap,
    int32_t[::1] position,
):
    cdef Py_ssize_t i, j, size = 0, at
    cdef int32_t place, head
    cdef double distance
    array = np.zeros(distances.shape[0], np.bool_)
    cdef uint8_t[::1] is_changed = array
    with nogil:
        for i in range(fresh.shape[0]):
            rise(heap, position, distances, fresh[i], size)
            size += 1
        while size > 0:
            place = heap[0]
            position[place] = -1
            size -= 1
            if size > 0:
                sink(heap, position, distances, heap[size], size)
            for j in range(begins[place], ends[place]):
                head = others[j]
                distance = distances[place] + weights[j]
                if distance < distances[head]:
                    distances[head] = distance
                    is_changed[head] = True
                    at = position[head]
                    if at < 0:
                        at = size
                        size += 1
                    rise(heap, position, distances, head, at)
    return flagged(array)


cdef inline void rise(
    int32_t[::1] heap, int32_t[::1] position, double[::1] distances, int32_t place, Py_ssize_t at
) noexcept nogil:
    """Put `place` at `at`, or as far above as its distance goes."""
    cdef Py_ssize_t above
    while at > 0:
        above = (at - 1) >> 1
        if distances[heap[above]] <= distances[place]:
            break
        heap[at] = heap[above]
        position[heap[at]] = <int32_t>at
        at = above
    heap[at] = place
    position[place] = <int32_t>at


cdef inline void sink(
    int32_t[::1] heap, int32_t[::1] position, double[::1] distances, int32_t place, Py_ssize_t size
) noexcept nogil:
    """Put `place` at the top, or as far below as its distance goes."""
    cdef Py_ssize_t below, at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and distances[heap[below + 1]] < distances[heap[below]]:
            below += 1
        if distances[place] <= distances[heap[below]]:
            break
        heap[at] = heap[below]
        position[heap[at]] = <int32_t>at
        at = below
    heap[at] = place
    position[place] = <int32_t>at


def sum_lists(Ints begins, Ints ends, Numbers others, const double[::1] values):
    cdef Py_ssize_t i, j
    cdef double total
    array = np.empty(begins.shape[0])
    cdef double[::1] sums = array
    with nogil:
        for i in range(begins.shape[0]):
            total = 0.0
            for j in range(begins[i], ends[i]):
                total += values[others[j]]
            sums[i] = total
    return array


def sum_weighted_lists(
    Ints starts, Numbers others, const double[::1] weights, const double[::1] values
):
    cdef Py_ssize_t i, j
    cdef double total
    array = np.empty(starts.shape[0] - 1)
    cdef double[::1] sums = array
    with nogil:
        for i in range(sums.shape[0]):
            total = 0.0
            for j in range(starts[i], starts[i + 1]):
                total += values[others[j]] * weights[j]
            sums[i] = total
    return array


def set_values(Numbers slots, const double[::1] values, Py_ssize_t first, double[::1] places):
    cdef Py_ssize_t i, n_left = 0
    with nogil:
        for i in range(slots.shape[0]):
            if slots[i] >= 0:
                places[first + slots[i]] = values[i]
            else:
                n_left += 1
    return n_left


cdef inline Py_ssize_t close_along(
    int64_t begin,
    int64_t end,
    Numbers others,
    int64_t[::1] counts,
    uint8_t[::1] is_open,
    int32_t[::1] closed,
    Py_ssize_t n_closed,
) noexcept nogil:
    """Count some edges no more, and close heads of which none is left; how many are closed."""
    cdef int64_t j
    cdef int32_t head
    for j in range(begin, end):
        head = others[j]
        counts[head] -= 1
        if counts[head] == 0 and is_open[head]:
            is_open[head] = False
            closed[n_closed] = head
            n_closed += 1
    return n_closed


def peel(
    Ints begins,
    Ints ends,
    Numbers others,
    Ints back_begins,
    Ints back_ends,
    Numbers back_others,
    int64_t[::1] counts,
    int64_t[::1] back_counts,
    uint8_t[::1] is_open,
    Numbers fresh,
):
    cdef Py_ssize_t i, n_closed = 0, n_fresh = fresh.shape[0]
    cdef int32_t place
    array = np.empty(counts.shape[0], np.int32)
    cdef int32_t[::1] closed = array
    with nogil:
        i = 0
        while i < n_fresh + n_closed:
            place = fresh[i] if i < n_fresh else closed[i - n_fresh]
            n_closed = close_along(
                begins[place], ends[place], others, counts, is_open, closed, n_closed
            )
            n_closed = close_along(
                back_begins[place],
                back_ends[place],
                back_others,
                back_counts,
                is_open,
                closed,
                n_closed,
            )
            i += 1
    return np.sort(array[:n_closed])


def peel_in_turn(
    Ints begins,
    Ints ends,
    Numbers others,
    Ints back_begins,
    Ints back_ends,
    Numbers back_others,
):
    cdef Py_ssize_t i, n_done = 0, n_closed = 0, n = begins.shape[0]
    cdef int64_t turn
    cdef int32_t place
    array = np.empty(n, np.int64)
    cdef int64_t[::1] lasts = array
    cdef int64_t[::1] counts = np.subtract(back_ends, back_begins)
    cdef int64_t[::1] back_counts = np.subtract(ends, begins)
    cdef uint8_t[::1] is_open = np.ones(n, np.uint8)
    cdef int32_t[::1] closed = np.empty(n, np.int32)
    with nogil:
        for i in range(n):
            if counts[i] == 0 or back_counts[i] == 0:
                is_open[i] = False
                closed[n_closed] = <int32_t>i
                n_closed += 1
        for turn in range(-1, n):
            if turn >= 0 and is_open[turn]:
                is_open[turn] = False
                closed[n_closed] = <int32_t>turn
                n_closed += 1
            while n_done < n_closed:
                place = closed[n_done]
                n_done += 1
                lasts[place] = turn
                n_closed = close_along(
                    begins[place], ends[place], others, counts, is_open, closed, n_closed
                )
                n_closed = close_along(
                    back_begins[place],
                    back_ends[place],
                    back_others,
                    back_counts,
                    is_open,
                    closed,
                    n_closed,
                )
    return array


def count_triads(
    Numbers tails,
    Ints begins,
    Ints ends,
    Numbers heads,
    const int8_t[::1] marks,
    Ints own_begins,
    Ints own_ends,
    Numbers own_heads,
    const int8_t[::1] own_marks,
    int64_t[::1] counts,
):
    cdef Py_ssize_t i, j, k, n = own_begins.shape[0]
    cdef int32_t b, c
    cdef int64_t at_a, at_b
    cdef int8_t[::1] marked = np.zeros(counts.shape[0], np.int8)
    with nogil:
        for i in range(tails.shape[0]):
            for j in range(begins[i], ends[i]):
                marked[heads[j]] = marks[j]
            at_a = 0
            for j in range(begins[i], ends[i]):
                b = heads[j]
                if b >= n:
                    continue
                at_b = 0
                for k in range(own_begins[b], own_ends[b]):
                    c = own_heads[k]
                    if marked[c] > 0:
                        at_a += own_marks[k]
                        at_b += marked[c]
                        counts[c] += marks[j]
                counts[b] += at_b
            counts[tails[i]] += at_a
            for j in range(begins[i], ends[i]):
                marked[heads[j]] = 0


def least_roots(Numbers left, Numbers right, int64_t n):
    cdef Py_ssize_t i
    cdef int32_t a, b
    array = np.arange(n, dtype=np.int32)
    cdef int32_t[::1] parents = array
    with nogil:
        for i in range(left.shape[0]):
            a = root(parents, left[i])
            b = root(parents, right[i])
            if a < b:
                parents[b] = a
            else:
                parents[a] = b
        for i in range(n):
            # A parent is less than its child, so it has its root already.
            parents[i] = parents[parents[i]]
    return array


cdef inline int32_t root(int32_t[::1] parents, int32_t number) noexcept nogil:
    """The root of `number`, halving the path to it."""
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number


def common_labels(
    Ints begins,
    Ints ends,
    Numbers others,
    Ints back_begins,
    Ints back_ends,
    Numbers back_others,
    Ints labels,
):
    """Counts by a hash table, of which each row uses as many slots as it has neighbours, twice.

    A slot is of the row that wrote it last, so that none has to be emptied.
    """
    cdef Py_ssize_t row, j, slot, n_near, longest = 0, n_slots = 1
    cdef int64_t label, best, most, mask
    for row in range(begins.shape[0]):
        n_near = ends[row] - begins[row] + back_ends[row] - back_begins[row]
        longest = max(longest, n_near)
    while n_slots < 2 * longest:
        n_slots *= 2
    array = np.empty(begins.shape[0], np.int64)
    cdef int64_t[::1] common = array
    cdef int64_t[:, ::1] votes = np.full((n_slots, 3), -1, np.int64)
    with nogil:
        for row in range(begins.shape[0]):
            n_near = ends[row] - begins[row] + back_ends[row] - back_begins[row]
            mask = 1
            while mask < 2 * n_near:
                mask *= 2
            mask -= 1
            best = labels[row]
            most = 0
            for j in range(begins[row], ends[row]):
                vote(votes, mask, row, labels[others[j]], &best, &most)
            for j in range(back_begins[row], back_ends[row]):
                vote(votes, mask, row, labels[back_others[j]], &best, &most)
            common[row] = best
    return array


cdef inline void vote(
    int64_t[:, ::1] votes, int64_t mask, int64_t row, int64_t label, int64_t *best, int64_t *most
) noexcept nogil:
    """Count a label, and keep the commonest so far, the least of those that are as common."""
    cdef int64_t slot = <int64_t>((<uint64_t>label * <uint64_t>0x9E3779B97F4A7C15) >> 32) & mask
    while votes[slot, 0] == row and votes[slot, 1] != label:
        slot = (slot + 1) & mask
    if votes[slot, 0] != row:
        votes[slot, 0] = row
        votes[slot, 1] = label
        votes[slot, 2] = 0
    votes[slot, 2] += 1
    if votes[slot, 2] > most[0] or (votes[slot, 2] == most[0] and label < best[0]):
        most[0] = votes[slot, 2]
        best[0] = label


def lower_cores(
    Ints begins,
    Ints ends,
    Numbers others,
    Ints push_begins,
    Ints push_ends,
    Numbers push_others,
    int64_t[::1] cores,
    Numbers fresh,
    int32_t[::1] queue,
    uint8_t[::1] queued,
):
    cdef Py_ssize_t i, j, first = 0, last, n = begins.shape[0]
    cdef int64_t before, core, n_supporting, most = 0
    cdef int32_t row, head
    for i in range(n):
        most = max(most, cores[i])
    array = np.zeros(n, np.bool_)
    cdef uint8_t[::1] is_changed = array
    cdef int64_t[::1] tally = np.zeros(most + 1, np.int64)
    with nogil:
        last = fill(queue, queued, fresh)
        while first != last:
            row = queue[first]
            first = after(first, queue.shape[0])
            queued[row] = False
            before = cores[row]
            for i in range(before + 1):
                tally[i] = 0
            for j in range(begins[row], ends[row]):
                tally[min(cores[others[j]], before)] += 1
            core = before
            n_supporting = tally[core]
            while n_supporting < core:
                core -= 1
                n_supporting += tally[core]
            if core == before:
                continue
            cores[row] = core
            is_changed[row] = True
            for j in range(push_begins[row], push_ends[row]):
                head = push_others[j]
                # Only the numbers that this row supported, and does not any more.
                if core < cores[head] <= before:
                    last = enqueue(queue, queued, last, head)
    return flagged(array)
