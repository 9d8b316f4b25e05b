"""Loops over columns: hashes, which records go to which worker, and columns in another order.

What each function does is said by its plain twin, of the same name in `hashing`, `partition`,
`deal` and `permute`. The loops that a wider vector unit makes two to six times as fast are compiled
three times, and the processor is asked once which it has.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    #include <immintrin.h>
    #define WIDE __attribute__((target("avx2")))
    #define DEEP __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
    /* Which vectors the processor has and the system keeps: AVX2 is 1, AVX-512 with products of 64
       bits 2. Asked by hand, as not every compiler's runtime has __builtin_cpu_supports. */
    static int find_unit(void) {
        unsigned a, b, c, d, low, high;
        unsigned deep = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)) || !(c & (1u << 28))) return 0;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
        if (!(b & (1u << 5))) return 0;
        return (low & 0xE0) == 0xE0 && (b & deep) == deep ? 2 : 1;
    }
    #else
    #define WIDE
    #define DEEP
    static int find_unit(void) { return 0; }
    #endif
    #define INLINED static inline __attribute__((always_inline))
    #define STEP 0xD6E8FEB86659FD93ULL
    #define SEED 0x74657874ULL  /* where the hash of a text begins */

    INLINED uint64_t mixed(uint64_t word) {
        word += 0x9E3779B97F4A7C15ULL;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
        return word ^ (word >> 31);
    }

    /* The body of a loop, once for any processor and for each wider vector unit. */
    #define FOR_EACH_UNIT(name, parameters, arguments)                           \
        static void name##_any parameters { name##_body arguments; }             \
        WIDE static void name##_wide parameters { name##_body arguments; }       \
        DEEP static void name##_deep parameters { name##_body arguments; }       \
        static void name parameters {                                            \
            if (unit == 2) name##_deep arguments;                                \
            else if (unit == 1) name##_wide arguments;                           \
            else name##_any arguments;                                           \
        }

    static int unit = 0;
    static void make_choices(void);
    static void look_for_units(void) { unit = find_unit(); make_choices(); }
    static int used_unit(int wanted) {
        int was = unit;
        unit = wanted < find_unit() ? wanted : find_unit();
        return was;
    }

    INLINED void mix_words_body(const uint64_t *words, uint64_t *hashes, Py_ssize_t n) {
        for (Py_ssize_t i = 0; i < n; i++) hashes[i] = mixed(words[i]);
    }
    FOR_EACH_UNIT(
        mix_words,
        (const uint64_t *words, uint64_t *hashes, Py_ssize_t n),
        (words, hashes, n)
    )

    INLINED void combine_words_body(
        const uint64_t *hashes, const uint64_t *more, uint64_t *combined, Py_ssize_t n
    ) {
        for (Py_ssize_t i = 0; i < n; i++) combined[i] = mixed(hashes[i] * STEP + more[i]);
    }
    FOR_EACH_UNIT(
        combine_words,
        (const uint64_t *hashes, const uint64_t *more, uint64_t *combined, Py_ssize_t n),
        (hashes, more, combined, n)
    )

    INLINED void mask_words_body(
        const uint64_t *hashes, uint64_t mask, uint8_t *destinations, Py_ssize_t n
    ) {
        for (Py_ssize_t i = 0; i < n; i++) destinations[i] = (uint8_t)(hashes[i] & mask);
    }
    FOR_EACH_UNIT(
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

    /* Hashes of texts of up to 16 bytes, of which both halves are mixed whether they are there
       or not: lengths come in no order, and a branch would be guessed wrong. */
    #define CHOSEN(condition, word, other) \
        (((word) & (0 - (uint64_t)(condition))) | ((other) & ((uint64_t)(condition) - 1)))
    INLINED void mix_short_texts_body(
        const uint64_t *low, const uint64_t *high, const uint64_t *sizes, uint64_t *hashes,
        Py_ssize_t n
    ) {
        for (Py_ssize_t i = 0; i < n; i++) {
            uint64_t none = SEED + sizes[i];
            uint64_t one = mixed(none * STEP + low[i]);
            uint64_t two = mixed(one * STEP + high[i]);
            uint64_t some = CHOSEN(sizes[i] > 8, two, one);
            hashes[i] = mixed(CHOSEN(sizes[i] > 0, some, none));
        }
    }
    FOR_EACH_UNIT(
        mix_short_texts,
        (const uint64_t *low, const uint64_t *high, const uint64_t *sizes, uint64_t *hashes,
         Py_ssize_t n),
        (low, high, sizes, hashes, n)
    )

    /* The first `size` bytes of a word, all from eight on. */
    INLINED uint64_t first_bytes(uint64_t word, uint64_t size) {
        uint64_t bits = 8 * (size & 7);
        uint64_t few = (1ULL << bits) - 1;
        return word & (few | (0 - (uint64_t)(size >= 8)));
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

    /* Values of peer 0 one after the other, and those of peer 1; up to SPARE more are written
       after the last of each. */
    static void deal_two_any(
        const uint64_t *restrict values, const uint8_t *restrict near, Py_ssize_t n,
        uint64_t *restrict first, uint64_t *restrict second
    ) {
        Py_ssize_t at = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            first[i - at] = values[i];
            second[at] = values[i];
            at += near[i];
        }
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    /* For each of the sixteen choices among four values, what moves those to the front. */
    static uint32_t to_front[16][8] __attribute__((aligned(32)));
    static uint8_t n_chosen[16];
    static void make_choices(void) {
        for (int choice = 0; choice < 16; choice++)
            for (int k = 0; k < 4; k++)
                if (choice >> k & 1) {
                    int at = 2 * n_chosen[choice]++;
                    to_front[choice][at] = 2 * k;
                    to_front[choice][at + 1] = 2 * k + 1;
                }
    }

    WIDE static void deal_two_wide(
        const uint64_t *restrict values, const uint8_t *restrict near, Py_ssize_t n,
        uint64_t *restrict first, uint64_t *restrict second
    ) {
        Py_ssize_t i, at = 0;
        for (i = 0; i + 4 <= n; i += 4) {
            uint32_t four;
            memcpy(&four, near + i, 4);
            uint32_t choice = four * 0x01020408u >> 24 & 15;  /* the lowest bits of four bytes */
            __m256i word = _mm256_loadu_si256((const __m256i *)(values + i));
            __m256i here = _mm256_load_si256((const __m256i *)to_front[choice]);
            __m256i there = _mm256_load_si256((const __m256i *)to_front[15 ^ choice]);
            _mm256_storeu_si256((__m256i *)(second + at), _mm256_permutevar8x32_epi32(word, here));
            _mm256_storeu_si256(
                (__m256i *)(first + i - at), _mm256_permutevar8x32_epi32(word, there)
            );
            at += n_chosen[choice];
        }
        deal_two_any(values + i, near + i, n - i, first + i - at, second + at);
    }
    #else
    #define deal_two_wide deal_two_any
    static void make_choices(void) {}
    #endif

    static void deal_two(
        const uint64_t *values, const uint8_t *near, Py_ssize_t n, uint64_t *first,
        uint64_t *second
    ) {
        if (unit) deal_two_wide(values, near, n, first, second);
        else deal_two_any(values, near, n, first, second);
    }

    /* How many records are one peer's: by bytes, which a vector holds most of. */
    static Py_ssize_t count_peer(const uint8_t *near, uint8_t peer, Py_ssize_t n) {
        Py_ssize_t total = 0;
        while (n) {
            Py_ssize_t some = n < 128 ? n : 128;
            uint8_t found = 0;
            for (Py_ssize_t i = 0; i < some; i++) found += near[i] == peer;
            total += found;
            near += some;
            n -= some;
        }
        return total;
    }

    /* The upper half of a product. */
    INLINED uint64_t high_product(uint64_t left, uint64_t right) {
        return (uint64_t)(((unsigned __int128)left * right) >> 64);
    }
    """
    uint64_t STEP, SEED
    void look_for_units() noexcept nogil
    int used_unit(int) noexcept nogil
    void mix_words_over "mix_words"(const uint64_t *, uint64_t *, Py_ssize_t) noexcept nogil
    void combine_words(const uint64_t *, const uint64_t *, uint64_t *, Py_ssize_t) noexcept nogil
    void mask_words(const uint64_t *, uint64_t, uint8_t *, Py_ssize_t) noexcept nogil
    Py_ssize_t collect_peer(const uint8_t *, uint8_t, int64_t *, Py_ssize_t) noexcept nogil
    void deal_two(
        const uint64_t *, const uint8_t *, Py_ssize_t, uint64_t *, uint64_t *
    ) noexcept nogil
    Py_ssize_t count_peer(const uint8_t *, uint8_t, Py_ssize_t) noexcept nogil
    uint64_t mixed(uint64_t) noexcept nogil
    uint64_t word_at(const uint8_t *) noexcept nogil
    void mix_short_texts(
        const uint64_t *, const uint64_t *, const uint64_t *, uint64_t *, Py_ssize_t
    ) noexcept nogil
    uint64_t first_bytes(uint64_t, uint64_t) noexcept nogil
    uint64_t high_product(uint64_t, uint64_t) noexcept nogil

look_for_units()

cdef enum:
    FEW_PEERS = 4
    SPARE = 4
    CHUNK = 2048  # values of which what is read again stays in the first cache
    SHORT = 16  # bytes of a text that is hashed together with others
    TEXTS = 256  # that are so hashed at a time
    UNSIGNED = 2
    REAL = 3

cdef uint64_t NAN_BITS = 0x7FF8000000000000
cdef double LEAST_INT = -9223372036854775808.0
cdef double BEYOND_INT = 9223372036854775808.0
cdef double BEYOND_UINT = 18446744073709551616.0


def _use_unit(int wanted):
    """Have the loops use no wider vector unit than this, 0 to 2; the one that they used.

    For tests: a processor runs one of the three forms of a loop.
    """
    return used_unit(wanted)


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
    cdef Py_ssize_t first, some, n = starts.shape[0], n_data = data.shape[0]
    array = np.empty(n, np.uint64)
    cdef uint64_t[::1] hashes = array
    cdef const uint8_t *texts = &data[0] if n_data else NULL
    with nogil:
        first = 0
        while first < n:
            some = min(n - first, <Py_ssize_t>TEXTS)
            hash_some(texts, n_data, &starts[first], &stops[first], &hashes[first], some)
            first += some
    return array


cdef void hash_some(
    const uint8_t *data,
    Py_ssize_t n_data,
    const int64_t *starts,
    const int64_t *stops,
    uint64_t *hashes,
    Py_ssize_t n,
) noexcept nogil:
    """Hash `n` texts, up to `TEXTS`: the short ones together, others each by itself."""
    cdef uint64_t[TEXTS] low, high, sizes
    cdef Py_ssize_t i, n_others = 0
    cdef bint other
    for i in range(n):
        other = stops[i] - starts[i] > SHORT or starts[i] + SHORT > n_data
        n_others += other
        sizes[i] = 0 if other else <uint64_t>(stops[i] - starts[i])
        if other:
            low[i] = high[i] = 0
        else:
            low[i] = first_bytes(word_at(data + starts[i]), sizes[i])
            high[i] = first_bytes(word_at(data + starts[i] + 8), sizes[i] - min(sizes[i], 8))
    mix_short_texts(low, high, sizes, hashes, n)
    if n_others:
        for i in range(n):
            if stops[i] - starts[i] > SHORT or starts[i] + SHORT > n_data:
                hashes[i] = hash_span(data, n_data, starts[i], stops[i])


cdef uint64_t hash_span(
    const uint8_t *data, Py_ssize_t n_data, int64_t start, int64_t stop
) noexcept nogil:
    cdef uint64_t hash = SEED + <uint64_t>(stop - start)
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


cdef uint64_t hash_value(const uint8_t *at, uint8_t kind, uint8_t width) noexcept nogil:
    """The hash of the number that lies there, aligned or not."""
    cdef uint64_t word = 0
    cdef double real
    cdef float single
    cdef int32_t wide
    cdef int16_t narrow
    if kind == REAL:
        if width == 8:
            memcpy(&real, at, 8)
        else:
            memcpy(&single, at, 4)
            real = single
        return mixed(float_word(real))
    if width == 8:
        memcpy(&word, at, 8)
    elif width == 4:
        memcpy(&wide, at, 4)
        word = <uint64_t><uint32_t>wide if kind == UNSIGNED else <uint64_t><int64_t>wide
    elif width == 2:
        memcpy(&narrow, at, 2)
        word = <uint64_t><uint16_t>narrow if kind == UNSIGNED else <uint64_t><int64_t>narrow
    else:
        word = at[0] if kind == UNSIGNED else <uint64_t><int64_t><int8_t>at[0]
    return mixed(word)


cdef uint64_t combined_hash(uint64_t hash, uint64_t more) noexcept nogil:
    return mixed(hash * STEP + more)


def order_by_peer(const uint64_t[::1] hashes, int64_t peers):
    cdef Py_ssize_t i, at, n = hashes.shape[0]
    cdef int64_t peer
    array = np.empty(n + 1, np.int64)  # what is to be written nowhere is written beyond
    starts_array = np.zeros(peers + 1, np.int64)
    cdef int64_t[::1] order = array, starts = starts_array
    cdef uint8_t[::1] near
    cdef int32_t[::1] destinations
    cdef int64_t[::1] places
    cdef uint64_t inverse = inverse_of(peers)
    if n == 0:
        return array[:0], starts_array
    if peers <= FEW_PEERS:
        near = np.empty(n, np.uint8)
        with nogil:
            find_peers(&hashes[0], n, peers, inverse, &near[0])
            at = 0
            for peer in range(peers):
                at += collect_peer(&near[0], <uint8_t>peer, &order[at], n)
                starts[peer + 1] = at
        return array[:n], starts_array
    destinations = np.empty(n, np.int32)
    places = np.empty(peers, np.int64)
    with nogil:
        for i in range(n):
            if inverse == 0:
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


cdef uint64_t inverse_of(int64_t peers) noexcept nogil:
    """What `remainder` divides by them with; 0 of a power of two, where a mask will do."""
    return 0 if peers & (peers - 1) == 0 else <uint64_t>-1 // <uint64_t>peers


cdef void find_peers(
    const uint64_t *hashes, Py_ssize_t n, int64_t peers, uint64_t inverse, uint8_t *near
) noexcept nogil:
    """The peer of each record; of at most 256 peers."""
    cdef Py_ssize_t i
    if inverse == 0:
        mask_words(hashes, <uint64_t>(peers - 1), near, n)
    else:
        for i in range(n):
            near[i] = <uint8_t>remainder(hashes[i], <uint64_t>peers, inverse)


cdef void add_counts(
    const uint8_t *near, Py_ssize_t n, int64_t peers, int64_t[::1] starts
) noexcept nogil:
    """Add how many records are each peer's to what stands after its place."""
    cdef Py_ssize_t i, left = n
    cdef int64_t peer, count
    if peers > FEW_PEERS:
        for i in range(n):
            starts[near[i] + 1] += 1
        return
    for peer in range(peers - 1):
        count = count_peer(near, <uint8_t>peer, n)
        starts[peer + 1] += count
        left -= count
    starts[peers] += left


def peers_of_hashes(const uint64_t[::1] hashes, int64_t peers):
    return peers_of(hashes, peers, False)


def peers_of_words(const uint64_t[::1] words, int64_t peers):
    return peers_of(words, peers, True)


cdef peers_of(const uint64_t[::1] words, int64_t peers, bint is_mixed):
    """The peers of hashes, or of words that are mixed first, a chunk at a time."""
    cdef Py_ssize_t some, start = 0, n = words.shape[0]
    cdef uint64_t inverse = inverse_of(peers)
    cdef uint64_t mixed_words[CHUNK]
    cdef const uint64_t *hashes
    array = np.empty(n, np.uint8)
    starts_array = np.zeros(peers + 1, np.int64)
    cdef uint8_t[::1] near = array
    cdef int64_t[::1] starts = starts_array
    cdef int64_t peer
    with nogil:
        while start < n:
            some = min(<Py_ssize_t>CHUNK, n - start)
            hashes = &words[start]
            if is_mixed:
                mix_words_over(hashes, mixed_words, some)
                hashes = mixed_words
            find_peers(hashes, some, peers, inverse, &near[start])
            add_counts(&near[start], some, peers, starts)
            start += some
        for peer in range(peers):
            starts[peer + 1] += starts[peer]
    return array, starts_array


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


ctypedef fused Place:
    int32_t
    int64_t


def gather_words(values, order):
    found = np.empty(order.shape[0], values.dtype)
    if order.itemsize == 4:
        gather_by[int32_t](values, order, found)
    else:
        gather_by[int64_t](values, order, found)
    return found


cdef gather_by(values, const Place[::1] order, found):
    cdef int width = values.itemsize
    if width == 8:
        gather_as[uint64_t, Place](values, order, found)
    elif width == 4:
        gather_as[uint32_t, Place](values, order, found)
    elif width == 2:
        gather_as[uint16_t, Place](values, order, found)
    else:
        gather_as[uint8_t, Place](values, order, found)


cdef gather_as(const Word[::1] values, const Place[::1] order, Word[::1] found):
    cdef Py_ssize_t i
    with nogil:
        for i in range(order.shape[0]):
            found[i] = values[order[i]]


ctypedef fused Bound:
    int32_t
    int64_t


def gather_texts(bounds, const uint8_t[::1] data, const int64_t[::1] order):
    ends = np.zeros(order.shape[0] + 1, bounds.dtype)
    if bounds.itemsize == 4:
        return ends, gather_texts_as[int32_t](bounds, data, order, ends)
    return ends, gather_texts_as[int64_t](bounds, data, order, ends)


cdef gather_texts_as(
    const Bound[::1] bounds, const uint8_t[::1] data, const int64_t[::1] order, Bound[::1] ends
):
    cdef Py_ssize_t i, n = order.shape[0], n_data = data.shape[0]
    cdef int64_t start, size
    cdef uint8_t *found
    with nogil:
        for i in range(n):
            ends[i + 1] = ends[i] + bounds[order[i] + 1] - bounds[order[i]]
    # Of a short text as many bytes as any has are copied: what is beyond it is written again.
    array = np.empty(ends[n] + SHORT, np.uint8)
    cdef uint8_t[::1] texts = array
    with nogil:
        for i in range(n):
            start = bounds[order[i]]
            size = ends[i + 1] - ends[i]
            found = &texts[ends[i]]
            if size <= SHORT and start + SHORT <= n_data:
                memcpy(found, &data[start], SHORT)
            elif size:
                memcpy(found, &data[start], size)
    return array[: ends[n]]


cdef void deal_over(
    const Word[::1] values, const uint8_t[::1] near, int64_t[::1] places, Word[::1] found
) noexcept nogil:
    """Put each value at the place of its peer, which goes on by one."""
    cdef Py_ssize_t i, at
    for i in range(values.shape[0]):
        at = places[near[i]]
        found[at] = values[i]
        places[near[i]] = at + 1


def deal_words(values, const uint8_t[::1] near, const int64_t[::1] starts):
    cdef Py_ssize_t peer, peers = starts.shape[0] - 1
    found = np.empty(values.shape[0] + SPARE * peers, values.dtype)
    places = np.empty(peers, np.int64)
    cdef int64_t[::1] at = places
    for peer in range(peers):
        at[peer] = starts[peer] + SPARE * peer
    cdef int width = values.itemsize
    if width == 8 and peers == 2:
        deal_between(values, near, at[1], found)
    elif width == 8:
        deal_as[uint64_t](values, near, at, found)
    elif width == 4:
        deal_as[uint32_t](values, near, at, found)
    elif width == 2:
        deal_as[uint16_t](values, near, at, found)
    else:
        deal_as[uint8_t](values, near, at, found)
    return found


cdef deal_between(
    const uint64_t[::1] values, const uint8_t[::1] near, int64_t second, uint64_t[::1] found
):
    """Of eight bytes between two peers: two passes in one, and four values at a time."""
    cdef Py_ssize_t n = values.shape[0]
    if n:
        with nogil:
            deal_two(&values[0], &near[0], n, &found[0], &found[second])


cdef deal_as(
    const Word[::1] values, const uint8_t[::1] near, int64_t[::1] at, Word[::1] found
):
    with nogil:
        deal_over[Word](values, near, at, found)
