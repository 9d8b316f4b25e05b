cimport cython


@cython.final
cdef class Step:
    cdef readonly Py_ssize_t to
    cdef object _by
    cdef readonly bint is_shift
    cdef readonly long long outer
    cdef readonly long long inner
    cdef readonly long long until

    cpdef arrives(self, object time)
