"""Rows of updates one by one: compared, copied, hashed, looked for."""

from cpython.buffer cimport PyBUF_ND, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint64_t

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


cdef struct Table:
    # Rows that an array holds, which is kept elsewhere.
    const int64_t *rows
    Py_ssize_t n
    Py_ssize_t width


cdef inline int look_at(object array, Table *table) except -1:
    """Where the rows of an array are: as a memoryview has it, at a third of the time."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_ND)
    cdef bint is_table = view.ndim == 2 and view.itemsize == sizeof(int64_t)
    if is_table:
        table.rows = <const int64_t *>view.buf
        table.n, table.width = view.shape[0], view.shape[1]
    PyBuffer_Release(&view)
    if not is_table:
        raise ValueError("rows of updates are arrays of 64-bit words in two dimensions")
    return 0


cdef struct Places:
    # Numbers of words that an array holds, which is kept elsewhere.
    const int32_t *at
    Py_ssize_t n


cdef inline int look_at_places(object array, Places *places) except -1:
    """Where the numbers of words of an array are."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_ND)
    cdef bint is_list = view.ndim == 1 and view.itemsize == sizeof(int32_t)
    if is_list:
        places.at, places.n = <const int32_t *>view.buf, view.shape[0]
    PyBuffer_Release(&view)
    if not is_list:
        raise ValueError("places of words are an array of 32-bit numbers in one dimension")
    return 0


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
