cdef class TimeEncoding:
    cdef readonly Py_ssize_t depth
    cdef readonly Py_ssize_t n_rounds
    cdef readonly object base
    cdef public bint outlasts

    cpdef tuple words(self, object time)
    cpdef object time(self, tuple words)
    cpdef list frontier(self, object times)


cpdef tuple join_of(tuple a, tuple b)
