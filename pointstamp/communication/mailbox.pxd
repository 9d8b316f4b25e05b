cdef class Mailbox:
    cdef readonly dict _queues
    cdef readonly Py_ssize_t _n_made
    cdef readonly set _touched

    cpdef put(self, object channel, object message)
    cpdef list touched_channels(self)
