cimport cython


@cython.final
cdef class Turns:
    cdef Py_ssize_t _first
    cdef Py_ssize_t _n_later
    cdef list _later

    @cython.locals(first=Py_ssize_t)
    cpdef add(self, Py_ssize_t child)
    @cython.locals(first=Py_ssize_t)
    cpdef Py_ssize_t take(self) except -1
    cpdef bint is_empty(self) except -1
