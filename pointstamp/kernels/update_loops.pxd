"""Rows of updates one by one: compared, copied, hashed, looked for."""

from libc.stdint cimport int64_t, uint64_t

ctypedef const int64_t[:, ::1] Rows


cdef inline int compare(const int64_t *one, const int64_t *other, Py_ssize_t n) noexcept nogil:
    """Below 0, 0, or above 0, as `n` words of one row are before those of the other."""
    cdef Py_ssize_t k
    for k in range(n):
        if one[k] != other[k]:
            return -1 if one[k] < other[k] else 1
    return 0


cdef inline void copy(int64_t *to, const int64_t *row, Py_ssize_t n) noexcept nogil:
    """`n` words: too few to call a function for."""
    cdef Py_ssize_t k
    for k in range(n):
        to[k] = row[k]


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    """The finalizer of splitmix64."""
    word += <uint64_t>0x9E3779B97F4A7C15
    word = (word ^ (word >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * <uint64_t>0x94D049BB133111EB
    return word ^ (word >> 31)


cdef inline uint64_t hash_row(const int64_t *row, Py_ssize_t n) noexcept nogil:
    """The hash of `n` words, of which there is one at least."""
    cdef uint64_t hash = mixed(<uint64_t>row[0])
    cdef Py_ssize_t k
    for k in range(1, n):
        hash = mixed(hash * <uint64_t>0xD6E8FEB86659FD93 + mixed(<uint64_t>row[k]))
    return hash


cdef bint next_there(
    const int64_t **data,
    const Py_ssize_t *size,
    Py_ssize_t *at,
    Py_ssize_t n_batches,
    Py_ssize_t width,
    const int64_t *key,
    Py_ssize_t n_key,
    int64_t *into,
) noexcept nogil
