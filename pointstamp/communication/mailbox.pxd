cimport cython

cdef object _new
cdef list _NONE


cpdef message(object sender, object tag, object batch)


cdef class ChannelEnd:
    cdef readonly Py_ssize_t id
    cdef object _forget
    cdef object _replace
    cdef Py_ssize_t _peers
    cdef object _arrived
    cdef object _carry

    cpdef send(self, Py_ssize_t peer, object tag, object batch)
    cpdef pull(self)


cpdef ChannelEnd end_of(object channel)


cdef class Mailbox:
    cdef readonly dict _queues
    cdef readonly Py_ssize_t _n_made
    cdef readonly set _touched

    cpdef put(self, object channel, object arrived)
    cpdef bint has_touched(self) except -1
    cpdef list touched_channels(self)
