cimport cython
from cpython.time cimport PyTime_PerfCounterRaw as _perf_counter_in_c


@cython.final
cdef class LogClock:
    cdef object _ticks
    cdef bint _is_compiled
    cdef readonly object unit
    cdef readonly long long last
    cdef readonly long long offset

    cpdef long long now(self)
    cpdef long long recent(self)
