"""The intersections of many sorted lists at once, which is where a join spends its time.

What each function does, and how, is said in `intersect` and `lookups`, which have the plain twins.
"""

from libc.stdint cimport INT64_MIN, int8_t, int32_t, int64_t, uint8_t

import numpy as np

ctypedef const int64_t[:, ::1] Spans
ctypedef const int32_t[:, ::1] Bound
ctypedef const int32_t[::1] Pool
ctypedef const int64_t[::1] Ints

ctypedef fused Item:
    int32_t
    int64_t

cdef int64_t FIRST = INT64_MIN

cdef enum:
    LONGER = 8  # a list this many times longer than the other is galloped through, not read
    MARKED_LISTS = 8  # a mark has as many bits
    QUESTIONS_OF_A_MARK = 2  # so many items can be marked in the time of finding one by galloping


def extend(
    Pool forward,
    Pool reverse,
    Pool carried,
    const int8_t[::1] pool_of,
    Spans begins,
    Spans ends,
    Bound bound,
    uint8_t[::1] marks,
    int64_t at,
    int64_t resume,
    int64_t budget,
    bint counting,
    int64_t[::1] parents,
    int32_t[::1] found,
):
    cdef Py_ssize_t n_lists = begins.shape[0], n_prefixes = begins.shape[1]
    cdef Py_ssize_t i, j, b, shortest, unmarked, chosen
    cdef int64_t total = 0, room = found.shape[0]
    cdef int64_t n_here, n_asked, n_read, n_kept, size, begin, end, base
    cdef int needed
    cdef const int32_t *pool
    # Slices would be counted up and down for each prefix, so the pools are handed on as pointers.
    cdef const int32_t *pools[3]
    pools[0] = first_of(forward)
    pools[1] = first_of(reverse)
    pools[2] = first_of(carried)
    # The span of the list last seen in each place, and whether it is marked.
    cdef int64_t[::1] shown = np.full(n_lists, -1, np.int64)
    cdef int64_t[::1] shown_end = np.zeros(n_lists, np.int64)
    cdef uint8_t[::1] marked = np.zeros(n_lists, np.uint8)
    if n_lists == 2 and counting and bound.shape[0] == 0 and resume == FIRST:
        if at < n_prefixes:
            with nogil:
                total = count_of_two(pools, pool_of, begins, ends, marks, &at, budget)
        return total, at, resume
    if n_lists == 1 and not counting and bound.shape[0] == 0:
        if at < n_prefixes:
            with nogil:
                total = copy_one(
                    pools[pool_of[0]], &begins[0, 0], &ends[0, 0], n_prefixes,
                    &at, &resume, budget, parents, found,
                )
        return total, at, resume
    with nogil:
        while at < n_prefixes and budget > 0 and (counting or total < room):
            n_here = 0
            for j in range(n_lists):
                n_here += ends[j, at] >= 0
            if n_here > 1:
                for j in range(min(n_lists, <Py_ssize_t>MARKED_LISTS)):
                    if ends[j, at] < 0 or (
                        begins[j, at] == shown[j] and ends[j, at] == shown_end[j]
                    ):
                        continue
                    pool = pools[pool_of[j]]
                    if marked[j]:
                        unmark(marks, pool, shown[j], shown_end[j], <uint8_t>(1 << j))
                    shown[j] = begins[j, at]
                    shown_end[j] = ends[j, at]
                    marked[j] = worth_marking(begins, ends, j, at)
                    if marked[j]:
                        mark(marks, pool, shown[j], shown_end[j], <uint8_t>(1 << j))

            # Which list to read: the shortest that is not marked, unless another is far shorter.
            shortest = -1
            unmarked = -1
            for j in range(n_lists):
                if ends[j, at] < 0:
                    continue
                size = ends[j, at] - begins[j, at]
                if shortest < 0 or size < ends[shortest, at] - begins[shortest, at]:
                    shortest = j
                if not marked[j] and (
                    unmarked < 0 or size < ends[unmarked, at] - begins[unmarked, at]
                ):
                    unmarked = j
            chosen = unmarked
            if unmarked < 0 or LONGER * (ends[shortest, at] - begins[shortest, at]) < (
                ends[unmarked, at] - begins[unmarked, at]
            ):
                chosen = shortest
            needed = 0
            n_asked = 0  # lists that have to be merged with, or galloped through
            for j in range(n_lists):
                if ends[j, at] >= 0 and j != chosen:
                    if marked[j]:
                        needed |= 1 << j
                    else:
                        n_asked += 1

            pool = pools[pool_of[chosen]]
            begin = begins[chosen, at]
            end = ends[chosen, at]
            if resume != FIRST:
                begin = gallop(pool, begin, end, resume)

            if counting and n_asked == 0 and (needed == 0 or bound.shape[0] == 0):
                if needed == 0:
                    total += end - begin
                    for b in range(bound.shape[0]):
                        if begin < end and contains(pool, begin, end, bound[b, at]):
                            total -= 1
                else:
                    total += count_marked(marks, pool, begin, end, <uint8_t>needed)
                    budget -= end - begin
                budget -= 1
                at += 1
                resume = FIRST
                continue

            while begin < end and budget > 0 and (counting or total < room):
                base = 0 if counting else total
                n_read = min(end - begin, room - base)
                n_kept = 0
                if needed == 0:
                    for i in range(n_read):
                        found[base + i] = pool[begin + i]
                    n_kept = n_read
                else:
                    # Written in any case, and kept by going on: without a branch that
                    # the processor would guess wrong.
                    for i in range(begin, begin + n_read):
                        found[base + n_kept] = pool[i]
                        n_kept += (marks[pool[i]] & needed) == needed
                for j in range(n_lists):
                    if n_kept > 0 and j != chosen and ends[j, at] >= 0 and not marked[j]:
                        n_kept = keep_common(
                            found,
                            base,
                            n_kept,
                            pools[pool_of[j]],
                            begins[j, at],
                            ends[j, at],
                        )
                if bound.shape[0] > 0:
                    n_kept = drop_bound(found, base, n_kept, bound, at)
                if not counting:
                    for i in range(base, base + n_kept):
                        parents[i] = at
                total += n_kept
                budget -= n_read
                begin += n_read
            if begin < end:
                resume = pool[begin]
            else:
                budget -= 1
                at += 1
                resume = FIRST
        for j in range(n_lists):
            if marked[j]:
                pool = pools[pool_of[j]]
                unmark(marks, pool, shown[j], shown_end[j], <uint8_t>(1 << j))
    return total, at, resume


cdef int64_t copy_one(
    const int32_t *pool,
    const int64_t *begins,
    const int64_t *ends,
    int64_t n,
    int64_t *first,
    int64_t *cursor,
    int64_t budget,
    int64_t[::1] parents,
    int32_t[::1] found,
) noexcept nogil:
    """What `extend` finds of one list, of which all is found, from a cursor on, which it moves."""
    cdef int64_t at = first[0], resume = cursor[0], total = 0, room = found.shape[0]
    cdef int64_t begin, end, stop
    while at < n and budget > 0 and total < room:
        begin = begins[at]
        end = ends[at]
        if resume != FIRST:
            begin = gallop(pool, begin, end, resume)
        stop = min(end, begin + min(room - total, budget))
        budget -= stop - begin + 1
        while begin < stop:
            found[total] = pool[begin]
            parents[total] = at
            total += 1
            begin += 1
        if begin < end:
            resume = pool[begin]
        else:
            resume = FIRST
            at += 1
    first[0] = at
    cursor[0] = resume
    return total


cdef int64_t count_of_two(
    const int32_t **pools,
    const int8_t[::1] pool_of,
    Spans begins,
    Spans ends,
    uint8_t[::1] marks,
    int64_t *first,
    int64_t budget,
) noexcept nogil:
    """What `extend` counts of two lists, from prefix `first` on, which it moves: each whole.

    There is one at least. Most graphs have short lists, of which the general case decides for
    longer than it reads them.
    """
    cdef int64_t total = 0, at = first[0], n = begins.shape[1], size, other
    cdef int64_t shown[2]
    cdef int64_t shown_end[2]
    cdef bint marked[2]
    cdef const int32_t *own[2]
    cdef const int64_t *starts[2]
    cdef const int64_t *stops[2]
    cdef int j, chosen
    for j in range(2):
        own[j] = pools[pool_of[j]]
        starts[j] = &begins[j, 0]
        stops[j] = &ends[j, 0]
        shown[j] = shown_end[j] = -1
        marked[j] = False
    while at < n and budget > 0:
        size = stops[0][at] - starts[0][at]
        other = stops[1][at] - starts[1][at]
        budget -= 1
        if stops[0][at] < 0 or stops[1][at] < 0:
            total += other if stops[0][at] < 0 else size
            at += 1
            continue
        if size == 0 or other == 0:
            at += 1
            continue
        for j in range(2):
            if starts[j][at] == shown[j] and stops[j][at] == shown_end[j]:
                continue
            if marked[j]:
                unmark(marks, own[j], shown[j], shown_end[j], <uint8_t>(1 << j))
            shown[j] = starts[j][at]
            shown_end[j] = stops[j][at]
            # One that no other prefix asks is not worth it.
            marked[j] = (
                at + 1 < n
                and starts[j][at + 1] == shown[j]
                and stops[j][at + 1] == shown_end[j]
                and worth_marking(begins, ends, j, at)
            )
            if marked[j]:
                mark(marks, own[j], shown[j], shown_end[j], <uint8_t>(1 << j))
        # The one to read: that which is not marked, unless the other one is far shorter.
        chosen = 0 if size <= other else 1
        if marked[chosen] and not marked[1 - chosen]:
            if LONGER * (size if chosen == 0 else other) >= (other if chosen == 0 else size):
                chosen = 1 - chosen
        j = 1 - chosen
        if marked[j]:
            total += count_marked(
                marks, own[chosen], shown[chosen], shown_end[chosen], <uint8_t>(1 << j)
            )
        else:
            total += count_common(
                own[chosen], shown[chosen], shown_end[chosen], own[j], shown[j], shown_end[j]
            )
        budget -= shown_end[chosen] - shown[chosen]
        at += 1
    for j in range(2):
        if marked[j]:
            unmark(marks, own[j], shown[j], shown_end[j], <uint8_t>(1 << j))
    first[0] = at
    return total


cdef inline int64_t count_common(
    const int32_t *pool,
    int64_t begin,
    int64_t end,
    const int32_t *other,
    int64_t other_begin,
    int64_t other_end,
) noexcept nogil:
    """How many values both lists have; the first has no more than the other."""
    cdef int64_t total = 0
    cdef int32_t mine, theirs
    if other_end - other_begin > LONGER * (end - begin):
        while begin < end and other_begin < other_end:
            other_begin = gallop(other, other_begin, other_end, pool[begin])
            total += other_begin < other_end and other[other_begin] == pool[begin]
            begin += 1
        return total
    # Without a branch that the processor would guess wrong.
    while begin < end and other_begin < other_end:
        mine = pool[begin]
        theirs = other[other_begin]
        total += mine == theirs
        begin += mine <= theirs
        other_begin += theirs <= mine
    return total


cdef inline bint worth_marking(Spans begins, Spans ends, Py_ssize_t j, int64_t at) noexcept nogil:
    """Whether the prefixes from `at` on that share list j ask more of it than marking costs."""
    cdef int64_t size = ends[j, at] - begins[j, at], asked = 0, least
    cdef Py_ssize_t i, other
    cdef bint is_asked
    for i in range(at, begins.shape[1]):
        if begins[j, i] != begins[j, at] or ends[j, i] != ends[j, at]:
            break
        least = size  # beyond its own size, a list is read instead of asked
        is_asked = False
        for other in range(begins.shape[0]):
            if other != j and ends[other, i] >= 0:
                is_asked = True
                least = min(least, ends[other, i] - begins[other, i])
        if is_asked:
            asked += least
        if asked > 2 * size:
            return True
    return False


cdef inline const int32_t *first_of(Pool pool) noexcept:
    return &pool[0] if pool.shape[0] > 0 else NULL


cdef inline int64_t count_marked(
    uint8_t[::1] marks, const int32_t *pool, int64_t begin, int64_t end, uint8_t needed
) noexcept nogil:
    cdef int64_t total = 0, odd = 0
    cdef Py_ssize_t i = begin
    if needed & (needed - 1) == 0:
        # One bit: what is added is it or 0, which takes half the instructions of a comparison.
        while i + 4 <= end:
            total += marks[pool[i]] & needed
            odd += marks[pool[i + 1]] & needed
            total += marks[pool[i + 2]] & needed
            odd += marks[pool[i + 3]] & needed
            i += 4
        while i < end:
            total += marks[pool[i]] & needed
            i += 1
        return (total + odd) // needed
    while i < end:
        total += (marks[pool[i]] & needed) == needed
        i += 1
    return total


cdef inline void mark(
    uint8_t[::1] marks, const int32_t *pool, int64_t begin, int64_t end, uint8_t bit
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        marks[pool[i]] |= bit


cdef inline void unmark(
    uint8_t[::1] marks, const int32_t *pool, int64_t begin, int64_t end, uint8_t bit
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        marks[pool[i]] &= 255 - bit


cdef inline int64_t gallop(const Item *pool, int64_t begin, int64_t end, int64_t value) noexcept nogil:
    """The first position in `pool[begin:end]`, sorted, that holds `value` or more; or `end`.

    Cost: the logarithm of how far it is.
    """
    cdef int64_t step = 1, high, middle
    while begin + step < end and pool[begin + step] < value:
        begin += step
        step *= 2
    high = min(begin + step, end)
    while begin < high:
        middle = (begin + high) >> 1
        if pool[middle] < value:
            begin = middle + 1
        else:
            high = middle
    return begin


cdef inline bint contains(const int32_t *pool, int64_t begin, int64_t end, int64_t value) noexcept nogil:
    cdef int64_t where = gallop(pool, begin, end, value)
    return where < end and pool[where] == value


cdef inline int64_t keep_common(
    int32_t[::1] found, int64_t base, int64_t n, const int32_t *other, int64_t begin, int64_t end
) noexcept nogil:
    """Keep of `found[base:base + n]` what is in `other[begin:end]`, in place; how many."""
    cdef int64_t n_kept = 0, i
    cdef int32_t mine, theirs
    if end - begin > LONGER * n:
        for i in range(base, base + n):
            begin = gallop(other, begin, end, found[i])
            if begin == end:
                break
            if other[begin] == found[i]:
                found[base + n_kept] = found[i]
                n_kept += 1
        return n_kept
    i = base
    while i < base + n and begin < end:
        mine = found[i]
        theirs = other[begin]
        if mine < theirs:
            i += 1
        elif theirs < mine:
            begin += 1
        else:
            found[base + n_kept] = mine
            n_kept += 1
            i += 1
            begin += 1
    return n_kept


cdef inline int64_t drop_bound(
    int32_t[::1] found, int64_t base, int64_t n, Bound bound, int64_t at
) noexcept nogil:
    """Drop from `found[base:base + n]` the values of `bound[:, at]`, in place; how many stay."""
    cdef int64_t n_kept = 0, i
    cdef Py_ssize_t b
    cdef bint is_bound
    for i in range(base, base + n):
        is_bound = False
        for b in range(bound.shape[0]):
            is_bound |= bound[b, at] == found[i]
        found[base + n_kept] = found[i]
        n_kept += not is_bound
    return n_kept


def are_members(Pool pool, const int64_t[::1] begins, const int64_t[::1] ends, Pool values):
    cdef Py_ssize_t i, n = values.shape[0]
    array = np.empty(n, np.bool_)
    cdef uint8_t[::1] found = array
    cdef const int32_t *first = first_of(pool)
    with nogil:
        for i in range(n):
            found[i] = begins[i] < ends[i] and contains(first, begins[i], ends[i], values[i])
    return array


cdef inline const int64_t *first_int(Ints pool) noexcept:
    """Where the items are; NULL where there are none."""
    return &pool[0] if pool.shape[0] else NULL


cdef inline int64_t end_of_like(const int64_t *pool, int64_t at, int64_t end) noexcept nogil:
    """Where what is like the item at `at` ends; a step or two, mostly."""
    cdef int64_t value = pool[at]
    at += 1
    if at == end or pool[at] != value:
        return at
    return gallop(pool, at, end, value + 1)


def equal_ranges(Ints pool, Ints begins, Ints ends, Ints wanted, int32_t[::1] marks):
    cdef Py_ssize_t i = 0, j, n = wanted.shape[0]
    array_of_firsts, array_of_lasts = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] firsts = array_of_firsts, lasts = array_of_lasts
    cdef const int64_t *items = first_int(pool)
    cdef int64_t begin, end, first
    with nogil:
        while i < n:
            begin, end = begins[i], ends[i]
            j = i + 1
            while j < n and begins[j] == begin and ends[j] == end:
                j += 1
            if (j - i) * QUESTIONS_OF_A_MARK >= end - begin:
                mark_places(items, begin, end, marks, True)
                while i < j:
                    first = begin + marks[wanted[i]] - 1
                    firsts[i] = max(first, begin)
                    lasts[i] = end_of_like(items, first, end) if first >= begin else begin
                    i += 1
                mark_places(items, begin, end, marks, False)
            while i < j:
                first = gallop(items, begin, end, wanted[i])
                firsts[i] = first
                lasts[i] = first
                if first < end and items[first] == wanted[i]:
                    lasts[i] = end_of_like(items, first, end)
                i += 1
    return array_of_firsts, array_of_lasts


cdef inline bint is_worth_marking(
    Ints begins, Ints ends, Ints other_begins, Ints other_ends, int64_t at, int64_t *judged
) noexcept nogil:
    """Whether the pairs from `at` on with the same other list have as many items as that one.

    If not, `judged` becomes the end of these pairs, so that each is looked at once.
    """
    cdef int64_t begin = other_begins[at], end = other_ends[at], n_items = 0, i = at
    while i < other_begins.shape[0] and other_begins[i] == begin and other_ends[i] == end:
        n_items += ends[i] - begins[i]
        i += 1
        if n_items >= end - begin and i > at + 1:
            return True
    judged[0] = i
    return False


def common_items(
    Ints pool,
    Ints begins,
    Ints ends,
    Ints other_pool,
    Ints other_begins,
    Ints other_ends,
    int32_t[::1] marks,
    int64_t[::1] marked,
    int64_t at,
    int64_t resume,
    int64_t budget,
    bint counting,
    int64_t[::1] of,
    int64_t[::1] positions,
    int64_t[::1] firsts,
    int64_t[::1] lasts,
):
    cdef int64_t n = begins.shape[0], room = of.shape[0], found = 0, judged = 0
    cdef const int64_t *mine = first_int(pool)
    cdef const int64_t *others = first_int(other_pool)
    cdef int64_t position, end, other, first, other_end, value, like_end
    cdef int64_t marked_begin = marked[0], marked_end = marked[1]
    cdef bint is_marked
    with nogil:
        while at < n and budget > 0:
            position, end = max(begins[at], resume), ends[at]
            other, other_end = other_begins[at], other_ends[at]
            is_marked = other == marked_begin and other_end == marked_end
            if not is_marked and at >= judged:
                is_marked = is_worth_marking(begins, ends, other_begins, other_ends, at, &judged)
                if is_marked:
                    mark_places(others, marked_begin, marked_end, marks, False)
                    mark_places(others, other, other_end, marks, True)
                    marked_begin, marked_end = other, other_end
                    budget -= other_end - other
            budget -= max(1, end - position)
            first = other
            while position < end and first < other_end:
                value = mine[position]
                if is_marked:
                    first = other + marks[value] - 1
                    if first < other:
                        position += 1
                        first = other
                        continue
                else:
                    first = gallop(others, first, other_end, value)
                    if first == other_end or others[first] != value:
                        position += 1
                        continue
                like_end = end_of_like(others, first, other_end)
                if counting:
                    found += like_end - first
                elif found == room:
                    break
                else:
                    of[found], positions[found] = at, position
                    firsts[found], lasts[found] = first, like_end
                    found += 1
                position += 1
            if not counting and found == room and position < end and first < other_end:
                resume = position
                break
            resume = -1
            at += 1
        if at == n:
            mark_places(others, marked_begin, marked_end, marks, False)
            marked_begin = marked_end = 0
    marked[0], marked[1] = marked_begin, marked_end
    return found, at, resume


cdef inline void mark_places(
    const int64_t *items, int64_t begin, int64_t end, int32_t[::1] marks, bint on
) noexcept nogil:
    """Mark each item with the first place that it has in its list, from 1; or take marks off."""
    cdef int64_t i = end
    while i > begin:
        i -= 1
        marks[items[i]] = <int32_t>(i - begin + 1) if on else 0
