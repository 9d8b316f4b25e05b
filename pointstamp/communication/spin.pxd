cimport cython
from cpython.time cimport monotonic as _monotonic_in_c

cdef bint _IS_COMPILED


cpdef double now_s() noexcept


@cython.final
cdef class Spin:
    cdef public bint is_allowed
    cdef Py_ssize_t _n_turns
    cdef double _wake_up_s
    cdef Py_ssize_t _to_skip
    cdef Py_ssize_t _penalty
    cdef bint _is_soon
    cdef bint _was_handed_over
    cdef readonly double seconds

    cpdef bint is_due(self) except -1
    @cython.locals(before=double)
    cpdef bint hand_over(self) except -1
    cpdef int slept(self, double seconds) except -1
    cpdef int woken(self, double seconds) except -1
    cdef int _set_length(self) except -1
