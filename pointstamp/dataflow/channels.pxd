cimport cython

from pointstamp.progress.change_batch cimport ChangeBatch


cdef Py_ssize_t _length(object batch)


cdef class Pusher:
    cpdef push(self, object time, object batch)


cdef class Tee:
    cdef readonly object name
    cdef public ChangeBatch produced
    cdef readonly list pushers
    cdef object _fail
    cdef object _kind
    cdef object _schema

    @cython.locals(n_records=Py_ssize_t, is_rows=bint, pusher=Pusher)
    cpdef push(self, object time, object batch)


cdef class Queue(Pusher):
    cdef readonly object _local
    cdef object _wake
    cdef readonly object _channel
    cdef readonly ChangeBatch consumed
    cdef public object last_time

    cpdef push(self, object time, object batch)
    cpdef tuple pull(self)
    cpdef abandon(self)


cdef class Spread(Pusher):
    cdef readonly Queue _queue
    cdef readonly object _channel
    cdef readonly object _key
    cdef readonly Py_ssize_t _index
    cdef readonly Py_ssize_t _peers

    @cython.locals(peer=Py_ssize_t)
    cpdef push(self, object time, object batch)


cdef class Copies(Pusher):
    cdef readonly Queue _queue
    cdef readonly object _channel
    cdef readonly Py_ssize_t _index
    cdef readonly Py_ssize_t _peers

    @cython.locals(peer=Py_ssize_t)
    cpdef push(self, object time, object batch)


cdef class Whole(Pusher):
    cdef readonly Queue _queue
    cdef readonly object _channel
    cdef readonly object _route
    cdef readonly Py_ssize_t _index
    cdef readonly Py_ssize_t _peers

    @cython.locals(peer=Py_ssize_t)
    cpdef push(self, object time, object batch)


cdef class Ingress(Pusher):
    cdef Tee _inner
    cdef object _refinement
    cdef ChangeBatch _entered
    cdef object _wake

    cpdef push(self, object time, object batch)


cdef class Egress(Pusher):
    cdef Tee _outer
    cdef object _refinement

    cpdef push(self, object time, object batch)
