cimport cython


cdef class BatchMerge:
    cdef object _left
    cdef object _right
    cdef object _into
    cdef object _at
    cdef Py_ssize_t _n_all
    cdef readonly bint is_complete
    cdef readonly Py_ssize_t n_fuel

    cpdef bint advance(self, Py_ssize_t fuel) except -1


cdef class BatchSeries:
    cdef public list rows
    cdef list _merges
    cdef Py_ssize_t _owed
    cdef Py_ssize_t _fuel
    cdef Py_ssize_t _at_once
    cdef Py_ssize_t _lump

    cpdef restart(self, object rows)
    cpdef set_fuel(self, Py_ssize_t fuel, Py_ssize_t at_once, Py_ssize_t lump)
    @cython.locals(under_way=BatchMerge)
    cpdef insert(self, object new)
    cpdef object as_one(self, object none)
    @cython.locals(rows=list, merges=list, at=Py_ssize_t, under_way=BatchMerge, is_free=bint)
    cdef _tidy(self, object new)
    @cython.locals(found=list)
    cdef _put(self, Py_ssize_t at, object merged)
    @cython.locals(at=Py_ssize_t)
    cdef _merge_last(self)


cdef Py_ssize_t _MOST_READ
cdef Py_ssize_t _FEW_ROWS
