cimport cython
from libc.stdint cimport int64_t

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

    cpdef int64_t now(self) except? -1
    cpdef int64_t recent(self) except? -1
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
