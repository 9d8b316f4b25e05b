cimport cython

from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport Frontier


@cython.final
cdef class Notificator:
    cdef object _key
    cdef bint _total
    cdef bint _is_line
    cdef bint _is_natural
    cdef list _frontiers
    cdef dict _waiting
    cdef list _heap
    cdef bint _is_late
    cdef bint _early
    cdef readonly object last_time
    cdef Capability _first
    cdef object _first_time
    cdef object _timestamp
    cdef dict _repeats
    cdef dict _required

    cpdef Capability next_complete(self)
    cpdef notify_at(self, object capability, object requirement=*)
    cdef _keep_until(self, object requirement, Capability capability)
    cdef _repeat(self, object time, Capability waiting, Capability capability)
    cdef Capability _take_next(self)
    cdef _least_required(self)
    cdef _keep(self, Capability capability)
    @cython.locals(first=Capability)
    cdef _keep_in_line(self, object time, Capability capability)
    cdef _put(self, object time, Capability capability)
    cpdef bint overlooked(self) except -1
    @cython.locals(heap=list, first=Capability)
    cdef Capability _take_complete(self)
    @cython.locals(frontier=Frontier)
    cpdef bint _is_complete(self, object time) except -1
