cimport cython


@cython.final
cdef class Fence:
    cdef readonly object _lock
    cdef readonly bint is_needed_between

    cpdef int full(self) except -1
    cpdef int between(self) except -1
