"""Arrays of NumPy as loops make and read them: by NumPy's own C, at a tenth of a call from Python.

A module that makes arrays calls `import_arrays` once, when it is imported.
"""

from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    #define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
    #include <numpy/arrayobject.h>
    """
    ctypedef struct Array "PyArrayObject":
        pass
    ctypedef Py_ssize_t Length "npy_intp"
    int NPY_INT64
    int import_arrays "_import_array"() except -1
    bint is_array "PyArray_Check"(object) noexcept
    bint is_contiguous "PyArray_IS_C_CONTIGUOUS"(Array *) noexcept
    int n_dimensions "PyArray_NDIM"(Array *) noexcept
    Py_ssize_t item_bytes "PyArray_ITEMSIZE"(Array *) noexcept
    Length *lengths "PyArray_DIMS"(Array *) noexcept
    void *items "PyArray_DATA"(Array *) noexcept
    object new_array "PyArray_SimpleNew"(int, Length *, int)


cdef struct Table:
    # Rows that an array holds, which is kept elsewhere.
    const int64_t *rows
    Py_ssize_t n
    Py_ssize_t width


cdef inline int look_at(object array, Table *table) except -1:
    """Where the rows of an array are."""
    cdef Array *own = <Array *>array
    table.rows = NULL
    table.n = table.width = 0
    if not (
        is_array(array)
        and is_contiguous(own)
        and item_bytes(own) == sizeof(int64_t)
        and n_dimensions(own) == 2
    ):
        raise ValueError("rows of updates are contiguous arrays of 64-bit words in two dimensions")
    table.rows = <const int64_t *>items(own)
    table.n, table.width = lengths(own)[0], lengths(own)[1]
    return 0


cdef struct Places:
    # Numbers of words that an array holds, which is kept elsewhere.
    const int32_t *at
    Py_ssize_t n


cdef inline int look_at_places(object array, Places *places) except -1:
    """Where the numbers of words of an array are."""
    cdef Array *own = <Array *>array
    if not (
        is_array(array)
        and is_contiguous(own)
        and item_bytes(own) == sizeof(int32_t)
        and n_dimensions(own) == 1
    ):
        raise ValueError("places of words are a contiguous array of 32-bit numbers in one dimension")
    places.at, places.n = <const int32_t *>items(own), lengths(own)[0]
    return 0


cdef inline object new_rows(Py_ssize_t n, Py_ssize_t width):
    """An array of so many rows of words, which are yet to be written."""
    cdef Length shape[2]
    shape[0], shape[1] = n, width
    return new_array(2, shape, NPY_INT64)
