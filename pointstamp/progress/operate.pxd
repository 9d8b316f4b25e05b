cimport cython


@cython.final
cdef class ProgressReport:
    cdef readonly tuple internal
    cdef readonly tuple consumed
    cdef readonly tuple produced
    cdef readonly bint active


cdef class DirectOperate:
    cpdef push_external_progress(self, object changes)
    cpdef ProgressReport pull_internal_progress(self)
    cpdef bint holds(self) except -1
    cpdef bint is_complete(self) except -1
    cpdef abandon(self)
    cpdef let_go(self)


cdef class CountObserver:
    cpdef lay_out(self, object ports)
    cpdef changed(self, Py_ssize_t location, object time, long long change)
    cpdef changed_number(
        self,
        Py_ssize_t location,
        long long outer,
        long long inner,
        bint is_pair,
        long long change,
    )
