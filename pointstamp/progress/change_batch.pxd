cimport cython


cdef class ChangeBatch:
    cdef readonly dict _changes

    @cython.locals(changes=dict, total="long long")
    cpdef update(self, object item, long long change)
    cpdef list drain(self)
    cpdef bint is_empty(self)
