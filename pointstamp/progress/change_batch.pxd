cimport cython

cdef Py_ssize_t _FEW


@cython.final
cdef class ChangeBatch:
    cdef readonly list items
    cdef readonly list changes
    cdef Py_ssize_t _n
    cdef dict _many

    @cython.locals(items=list, n=Py_ssize_t, place=Py_ssize_t)
    cpdef update(self, object item, long long change)
    cpdef Py_ssize_t gather(self) except -1
    cpdef clear(self)
    @cython.locals(changes=list)
    cpdef list drain(self)
    cpdef bint is_empty(self) except -1
    @cython.locals(place=Py_ssize_t)
    cdef list _pairs(self)
    @cython.locals(total="long long")
    cdef int _add(self, Py_ssize_t place, long long change) except -1
    cdef _make_many(self)
    @cython.locals(total="long long")
    cdef _update_many(self, object item, long long change)
