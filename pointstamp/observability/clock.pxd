cimport cython

from pointstamp.metrics.tick_clock cimport now_ns


@cython.final
cdef class LogClock:
    cdef object _ticks
    cdef readonly object unit
    cdef readonly long long last
    cdef readonly long long offset

    cpdef long long now(self)
    cpdef long long recent(self)
