"""Rows of updates one by one: compared, copied, looked for. For the loops over them."""

from libc.stdint cimport int64_t


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

    By steps that double, and halves of the last one: near rows are found in few steps.
    """
    cdef Py_ssize_t low = begin, step = 1, middle
    while low + step <= n and (
        compare(rows + (low + step - 1) * width, key, n_key) < (1 if after else 0)
    ):
        low += step
        step *= 2
    cdef Py_ssize_t high = min(low + step - 1, n)
    while low < high:
        middle = low + (high - low) // 2
        if compare(rows + middle * width, key, n_key) < (1 if after else 0):
            low = middle + 1
        else:
            high = middle
    return low
