"""Loops over columns: hashes, which records go to which worker, and columns in another order.

What each function does is said by its plain twin, of the same name in `hashing`, `partition`
and `permute`. The loops that a wider vector unit makes twice as fast are compiled twice, and
the processor is asked once which it has.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy

import numpy as np

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    #define WIDE __attribute__((target("avx2")))
    /* Whether the processor has AVX2 and the system keeps its registers: asked by hand, as not
       every compiler's runtime has __builtin_cpu_supports. */
    static int find_wide(void) {
        unsigned a, b, c, d, low, high;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)) || !(c & (1u << 28))) return 0;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 6) != 6) return 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 5)) != 0;
    }
    #else
    #define WIDE
    static int find_wide(void) { return 0; }
    #endif
    #define INLINED static inline __attribute__((always_inline))
    #define STEP 0xD6E8FEB86659FD93ULL

    INLINED uint64_t mixed(uint64_t word) {
        word += 0x9E3779B97F4A7C15ULL;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
        return word ^ (word >> 31);
    }

    /* The body of a loop, once for any processor and once for a wide one. */
    #define TWICE(name, parameters, arguments)                                   \
        static void name##_any parameters { name##_body arguments; }             \
        WIDE static void name##_wide parameters { name##_body arguments; }       \
        static void name parameters {                                            \
            if (is_wide) name##_wide arguments; else name##_any arguments;       \
        }

    static int is_wide = 0;
    static void look_for_wide(void) { is_wide = find_wide(); }

    INLINED void mix_words_body(const uint64_t *words, uint64_t *hashes, Py_ssize_t n) {
        for (Py_ssize_t i = 0; i < n; i++) hashes[i] = mixed(words[i]);
    }
    TWICE(mix_words, (const uint64_t *words, uint64_t *hashes, Py_ssize_t n), (words, hashes, n))

    INLINED void combine_words_body(
        const uint64_t *hashes, const uint64_t *more, uint64_t *combined, Py_ssize_t n
    ) {
        for (Py_ssize_t i = 0; i < n; i++) combined[i] = mixed(hashes[i] * STEP + more[i]);
    }
    TWICE(
        combine_words,
        (const uint64_t *hashes, const uint64_t *more, uint64_t *combined, Py_ssize_t n),
        (hashes, more, combined, n)
    )

    INLINED void mask_words_body(
        const uint64_t *hashes, uint64_t mask, uint8_t *destinations, Py_ssize_t n
    ) {
        for (Py_ssize_t i = 0; i < n; i++) destinations[i] = (uint8_t)(hashes[i] & mask);
    }
    TWICE(
        mask_words,
        (const uint64_t *hashes, uint64_t mask, uint8_t *destinations, Py_ssize_t n),
        (hashes, mask, destinations, n)
    )

    /* Eight bytes, the first of them lowest. */
    INLINED uint64_t word_at(const uint8_t *data) {
        uint64_t word;
        memcpy(&word, data, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }

    /* The numbers of one peer's records, one after the other: each is written, and kept by
       going on. Without a branch, which the processor would guess wrong. */
    static Py_ssize_t collect_peer(
        const uint8_t *restrict near, uint8_t peer, int64_t *restrict order, Py_ssize_t n
    ) {
        Py_ssize_t at = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            order[at] = i;
            at += near[i] == peer;
        }
        return at;
    }

    /* The upper half of a product. */
    INLINED uint64_t high_product(uint64_t left, uint64_t right) {
        return (uint64_t)(((unsigned __int128)left * right) >> 64);
    }
    """
    uint64_t STEP
    void look_for_wide() noexcept nogil
    void mix_words_over "mix_words"(const uint64_t *, uint64_t *, Py_ssize_t) noexcept nogil
    void combine_words(const uint64_t *, const uint64_t *, uint64_t *, Py_ssize_t) noexcept nogil
    void mask_words(const uint64_t *, uint64_t, uint8_t *, Py_ssize_t) noexcept nogil
    Py_ssize_t collect_peer(const uint8_t *, uint8_t, int64_t *, Py_ssize_t) noexcept nogil
    uint64_t mixed(uint64_t) noexcept nogil
    uint64_t word_at(const uint8_t *) noexcept nogil
    uint64_t high_product(uint64_t, uint64_t) noexcept nogil

look_for_wide()

cdef enum:
    FEW_PEERS = 4
    TEXT = 0x74657874

cdef uint64_t NAN_BITS = 0x7FF8000000000000
cdef double LEAST_INT = -9223372036854775808.0
cdef double BEYOND_INT = 9223372036854775808.0
cdef double BEYOND_UINT = 18446744073709551616.0


def hash_words(const uint64_t[::1] words):
    cdef Py_ssize_t n = words.shape[0]
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] hashes = array
    if n:
        with nogil:
            mix_words_over(&words[0], &hashes[0], n)
    return array


def combine_all(const uint64_t[::1] hashes, const uint64_t[::1] more):
    cdef Py_ssize_t n = hashes.shape[0]
    if more.shape[0] != n:
        raise ValueError(f"{n} keys and {more.shape[0]} further parts of them")
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] combined = array
    if n:
        with nogil:
            combine_words(&hashes[0], &more[0], &combined[0], n)
    return array


def float_words(const double[::1] values):
    cdef Py_ssize_t i, n = values.shape[0]
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] words = array
    with nogil:
        for i in range(n):
            words[i] = float_word(values[i])
    return array


cdef inline uint64_t float_word(double value) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, &value, 8)
    if value != value:
        word = NAN_BITS
    elif LEAST_INT <= value < BEYOND_INT:
        if <double><int64_t>value == value:
            word = <uint64_t><int64_t>value
    elif BEYOND_INT <= value < BEYOND_UINT:
        word = <uint64_t>value
    return word


def hash_spans(
    const int64_t[::1] starts, const int64_t[::1] stops, const uint8_t[::1] data
):
    cdef Py_ssize_t i, n = starts.shape[0], n_data = data.shape[0]
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] hashes = array
    cdef const uint8_t *first = &data[0] if n_data else NULL
    with nogil:
        for i in range(n):
            hashes[i] = hash_span(first, n_data, starts[i], stops[i])
    return array


cdef inline uint64_t hash_span(
    const uint8_t *data, Py_ssize_t n_data, int64_t start, int64_t stop
) noexcept nogil:
    cdef uint64_t hash = <uint64_t>TEXT + <uint64_t>(stop - start)
    cdef uint64_t word = 0
    cdef int64_t at = start, k
    while at + 8 <= stop:
        hash = mixed(hash * STEP + word_at(data + at))
        at += 8
    if at < stop:
        if at + 8 <= n_data:  # read too much, and forget what is not ours
            word = word_at(data + at) & ((<uint64_t>1 << (8 * (stop - at))) - 1)
        else:
            for k in range(stop - at):
                word |= <uint64_t>data[at + k] << (8 * k)
        hash = mixed(hash * STEP + word)
    return mixed(hash)


def order_by_peer(const uint64_t[::1] hashes, int64_t peers):
    cdef Py_ssize_t i, at, n = hashes.shape[0]
    cdef int64_t peer
    array = np.empty(n + 1, np.int64)  # what is to be written nowhere is written beyond
    starts_array = np.zeros(peers + 1, np.int64)
    cdef int64_t[::1] order = array, starts = starts_array
    cdef uint8_t[::1] near
    cdef int32_t[::1] destinations
    cdef int64_t[::1] places
    cdef uint64_t inverse = 0
    cdef bint is_power = peers & (peers - 1) == 0
    if not is_power:
        inverse = <uint64_t>-1 // <uint64_t>peers
    if n == 0:
        return array[:0], starts_array
    if peers <= FEW_PEERS:
        near = np.empty(n, np.uint8)
        with nogil:
            if is_power:
                mask_words(&hashes[0], <uint64_t>(peers - 1), &near[0], n)
            else:
                for i in range(n):
                    near[i] = <uint8_t>remainder(hashes[i], <uint64_t>peers, inverse)
            at = 0
            for peer in range(peers):
                at += collect_peer(&near[0], <uint8_t>peer, &order[at], n)
                starts[peer + 1] = at
        return array[:n], starts_array
    destinations = np.empty(n, np.int32)
    places = np.empty(peers, np.int64)
    with nogil:
        for i in range(n):
            if is_power:
                destinations[i] = <int32_t>(hashes[i] & <uint64_t>(peers - 1))
            else:
                destinations[i] = <int32_t>remainder(hashes[i], <uint64_t>peers, inverse)
            starts[destinations[i] + 1] += 1
        for peer in range(peers):
            starts[peer + 1] += starts[peer]
            places[peer] = starts[peer]
        for i in range(n):
            at = places[destinations[i]]
            order[at] = i
            places[destinations[i]] = at + 1
    return array[:n], starts_array


cdef inline uint64_t remainder(uint64_t value, uint64_t by, uint64_t inverse) noexcept nogil:
    """`value % by`, where `inverse` is (2^64 - 1) // by and `by` no power of two.

    The quotient by multiplication is right or one too low (Barrett's reduction).
    """
    cdef uint64_t rest = value - high_product(value, inverse) * by
    return rest - by if rest >= by else rest


ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void gather_over(
    const Word[::1] values, const int64_t[::1] order, Word[::1] found
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(order.shape[0]):
        found[i] = values[order[i]]


def gather_words(values, const int64_t[::1] order):
    found = np.empty(order.shape[0], values.dtype)
    cdef int width = values.itemsize
    if width == 8:
        gather_8(values, order, found)
    elif width == 4:
        gather_4(values, order, found)
    elif width == 2:
        gather_2(values, order, found)
    else:
        gather_1(values, order, found)
    return found


cdef gather_1(const uint8_t[::1] values, const int64_t[::1] order, uint8_t[::1] found):
    with nogil:
        gather_over[uint8_t](values, order, found)


cdef gather_2(const uint16_t[::1] values, const int64_t[::1] order, uint16_t[::1] found):
    with nogil:
        gather_over[uint16_t](values, order, found)


cdef gather_4(const uint32_t[::1] values, const int64_t[::1] order, uint32_t[::1] found):
    with nogil:
        gather_over[uint32_t](values, order, found)


cdef gather_8(const uint64_t[::1] values, const int64_t[::1] order, uint64_t[::1] found):
    with nogil:
        gather_over[uint64_t](values, order, found)


# A small batch of Arrow's, from batch to batches: by the structs of its C data interface, so
# that no object is made for a column.

cdef extern from *:
    """
    #include <stdlib.h>

    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };

    /* What belongs to a batch lies in one piece of memory, which begins with the number of its
       arrays that are not released. Any thread may release them. */
    static void release_part(struct ArrowArray *array) {
        int64_t *n_alive = (int64_t *)array->private_data;
        for (int64_t i = 0; i < array->n_children; i++)
            if (array->children[i]->release) array->children[i]->release(array->children[i]);
        array->release = NULL;
        if (__atomic_sub_fetch(n_alive, 1, __ATOMIC_ACQ_REL) == 0) free(n_alive);
    }
    """
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data
    void release_part(ArrowArray *) noexcept nogil

cdef enum:
    MAX_ROWS = 1024
    MAX_COLUMNS = 64
    LINE = 64
    SIGNED = 1
    UNSIGNED = 2
    REAL = 3
    TEXTS = 4


def split_small(
    batch, imported, const uint8_t[::1] kinds, const uint8_t[::1] widths, const int32_t[::1] keys,
    int64_t peers
):
    cdef uint64_t hashes[MAX_ROWS]
    cdef int64_t n_columns = kinds.shape[0]
    cdef int64_t i, peer, n
    cdef ArrowArray source, part
    if n_columns > MAX_COLUMNS:
        return None
    batch._export_to_c(<uintptr_t>&source)
    try:
        n = source.length
        if n > MAX_ROWS or not is_readable(&source, kinds):
            return None
        hash_rows(&source, kinds, widths, keys, hashes)
        for i in range(n):
            hashes[i] %= <uint64_t>peers
        parts = []
        schema = batch.schema
        for peer in range(peers):
            if not make_part(&source, kinds, widths, hashes, <uint64_t>peer, &part):
                raise MemoryError
            try:
                parts.append(imported(<uintptr_t>&part, schema))
            finally:
                if part.release != NULL:
                    part.release(&part)
        return parts
    finally:
        source.release(&source)


cdef bint is_readable(const ArrowArray *source, const uint8_t[::1] kinds) noexcept nogil:
    """Whether no column has nulls: a mask without any may be there all the same."""
    cdef int64_t i
    for i in range(source.n_children):
        if source.children[i].null_count != 0 and source.children[i].buffers[0] != NULL:
            return False
    return True


cdef void hash_rows(
    const ArrowArray *source,
    const uint8_t[::1] kinds,
    const uint8_t[::1] widths,
    const int32_t[::1] keys,
    uint64_t *hashes,
) noexcept nogil:
    cdef int64_t i, k, start, n = source.length
    cdef const ArrowArray *column
    cdef uint64_t hash
    for k in range(keys.shape[0]):
        column = source.children[keys[k]]
        start = source.offset + column.offset
        for i in range(n):
            hash = hash_of(column, kinds[keys[k]], widths[keys[k]], start + i, start + n)
            hashes[i] = mixed(hashes[i] * STEP + hash) if k else hash


cdef inline uint64_t hash_of(
    const ArrowArray *column, uint8_t kind, uint8_t width, int64_t i, int64_t stop
) noexcept nogil:
    cdef const void *data = column.buffers[1]
    cdef const int32_t *bounds
    if kind == TEXTS:
        bounds = <const int32_t *>data
        return hash_span(<const uint8_t *>column.buffers[2], bounds[stop], bounds[i], bounds[i + 1])
    if kind == REAL:
        if width == 8:
            return mixed(float_word((<const double *>data)[i]))
        return mixed(float_word((<const float *>data)[i]))
    if kind == UNSIGNED:
        if width == 8:
            return mixed((<const uint64_t *>data)[i])
        if width == 4:
            return mixed((<const uint32_t *>data)[i])
        if width == 2:
            return mixed((<const uint16_t *>data)[i])
        return mixed((<const uint8_t *>data)[i])
    if width == 8:
        return mixed((<const uint64_t *>data)[i])
    if width == 4:
        return mixed(<uint64_t><int64_t>(<const int32_t *>data)[i])
    if width == 2:
        return mixed(<uint64_t><int64_t>(<const int16_t *>data)[i])
    return mixed(<uint64_t><int64_t>(<const int8_t *>data)[i])


cdef bint make_part(
    const ArrowArray *source,
    const uint8_t[::1] kinds,
    const uint8_t[::1] widths,
    const uint64_t *peer_of,
    uint64_t peer,
    ArrowArray *part,
) noexcept nogil:
    """The records of one peer as a batch of their own; False if there is no memory for it."""
    cdef int64_t i, k, start, n = 0, m = source.n_children
    cdef const ArrowArray *column
    cdef const int32_t *bounds
    cdef ArrowArray *arrays
    cdef const void **buffers
    cdef uint8_t *memory
    cdef uint8_t *data
    cdef int64_t sizes[MAX_COLUMNS]
    for i in range(source.length):
        n += peer_of[i] == peer
    # How much it takes: the count, the arrays and where their data lies, and the data.
    cdef int64_t n_head = 8 + m * (sizeof(ArrowArray) + 4 * sizeof(void *)) + sizeof(void *)
    cdef int64_t n_bytes = n_head + LINE
    for k in range(m):
        sizes[k] = n * widths[k]
        if kinds[k] == TEXTS:
            column = source.children[k]
            bounds = <const int32_t *>column.buffers[1] + source.offset + column.offset
            for i in range(source.length):
                if peer_of[i] == peer:
                    sizes[k] += bounds[i + 1] - bounds[i]
            sizes[k] += (n + 1) * 4 + LINE
        n_bytes += sizes[k] + LINE
    memory = <uint8_t *>calloc(n_bytes, 1)
    if memory == NULL:
        return False
    (<int64_t *>memory)[0] = m + 1
    arrays = <ArrowArray *>(memory + 8)
    part.children = <ArrowArray **>(arrays + m)
    buffers = <const void **>(part.children + m)
    fill_array(part, n, memory, 1, buffers)
    part.n_children = m
    buffers += 1
    data = aligned(<uint8_t *>(buffers + 3 * m))
    for k in range(m):
        column = source.children[k]
        start = source.offset + column.offset
        fill_array(&arrays[k], n, memory, 3 if kinds[k] == TEXTS else 2, buffers)
        part.children[k] = &arrays[k]
        buffers[1] = data
        if kinds[k] == TEXTS:
            buffers[2] = aligned(data + (n + 1) * 4)
            gather_texts(column, start, source.length, peer_of, peer, <int32_t *>data, <uint8_t *>buffers[2])
        else:
            gather_values(
                <const uint8_t *>column.buffers[1] + start * widths[k], widths[k], source.length,
                peer_of, peer, data,
            )
        data = aligned(data + sizes[k])
        buffers += 3
    return True


cdef inline uint8_t *aligned(uint8_t *memory) noexcept nogil:
    return <uint8_t *>((<uintptr_t>memory + LINE - 1) & ~<uintptr_t>(LINE - 1))


cdef inline void fill_array(
    ArrowArray *array, int64_t n, uint8_t *memory, int64_t n_buffers, const void **buffers
) noexcept nogil:
    array.length = n
    array.null_count = 0
    array.offset = 0
    array.n_buffers = n_buffers
    array.n_children = 0
    array.buffers = buffers
    array.dictionary = NULL
    array.release = release_part
    array.private_data = memory


cdef void gather_values(
    const uint8_t *values, uint8_t width, int64_t n, const uint64_t *peer_of, uint64_t peer,
    uint8_t *found,
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if peer_of[i] == peer:
            if width == 8:
                memcpy(found, values + 8 * i, 8)
            elif width == 4:
                memcpy(found, values + 4 * i, 4)
            else:
                memcpy(found, values + width * i, width)
            found += width


cdef void gather_texts(
    const ArrowArray *column, int64_t start, int64_t n, const uint64_t *peer_of, uint64_t peer,
    int32_t *found_bounds, uint8_t *found,
) noexcept nogil:
    cdef const int32_t *bounds = <const int32_t *>column.buffers[1] + start
    cdef const uint8_t *texts = <const uint8_t *>column.buffers[2]
    cdef int32_t at = 0, n_bytes
    cdef int64_t i
    found_bounds[0] = 0
    for i in range(n):
        if peer_of[i] == peer:
            n_bytes = bounds[i + 1] - bounds[i]
            memcpy(found + at, texts + bounds[i], n_bytes)
            at += n_bytes
            found_bounds += 1
            found_bounds[0] = at
