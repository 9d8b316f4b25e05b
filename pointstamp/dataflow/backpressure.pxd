cimport cython

from pointstamp.containers.registry cimport kind_of

cdef Py_ssize_t _SMALL
cdef Py_ssize_t _N_ESTIMATES


cdef class InFlight:
    cdef object _backpressure
    cdef double _limit_bytes
    cdef object _notify
    cdef list _records
    cdef list _bytes
    cdef list _is_over
    cdef list _taken
    cdef list _taken_bytes
    cdef list _ahead
    cdef double _record_bytes
    cdef Py_ssize_t _n_small

    cpdef sent(self, Py_ssize_t peer, object batch, Py_ssize_t n_records)
    cpdef taken(self, Py_ssize_t sender, object batch, Py_ssize_t n_records)
    cdef double _size(self, object batch, Py_ssize_t n_records) except? -1
