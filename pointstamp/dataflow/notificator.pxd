cimport cython

from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport Frontier


cdef class Notificator:
    cdef object _key
    cdef bint _total
    cdef bint _is_line
    cdef list _frontiers
    cdef dict _waiting
    cdef list _heap
    cdef bint _is_late
    cdef bint _early
    cdef readonly object last_time

    cpdef notify_at(self, object capability)
    cdef _keep(self, Capability capability)
    cpdef bint overlooked(self)
    @cython.locals(heap=list)
    cdef Capability _take_complete(self)
    @cython.locals(frontier=Frontier)
    cdef bint _is_complete(self, object time)
