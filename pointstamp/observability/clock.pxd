cimport cython

from pointstamp.metrics.tick_clock cimport now_ns, ticks


@cython.final
cdef class LogClock:
    cdef object _ticks
    cdef readonly object unit
    cdef readonly long long last
    cdef bint _is_counter
    cdef long long _offset
    cdef list _readings
    cdef list _ns

    cpdef long long now(self)
    cpdef long long recent(self)
    @cython.locals(
        place=Py_ssize_t,
        first=Py_ssize_t,
        reading="long long",
        begin="long long",
        end="long long",
        base="long long",
        passed="long long",
        ns_of_one=double,
    )
    cdef _fill(self, long long[:] readings, long long[::1] found)
