cimport cython

from pointstamp.communication.mailbox cimport ChannelEnd, end_of
from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.progress.subgraph cimport Subgraph


cdef class ProgressExchange:
    cdef readonly object channel
    cdef ChannelEnd _end
    cdef readonly dict subgraphs
    cdef list _others
    cdef StepObserver _log
    cdef list _outbox
    cdef readonly list _holding
    cdef object _flush
    cdef object _communicator
    cdef Py_ssize_t _n_urgent
    cdef Py_ssize_t _interval
    cdef readonly bint is_urgent

    @cython.locals(is_urgent=bint)
    cpdef Py_ssize_t pace(self, double seconds) except -1
    @cython.locals(outbox=list)
    cpdef send(self)
    @cython.locals(subgraph=Subgraph)
    cdef _receive(self)
    cdef _send(self, Py_ssize_t peer, object scope, object updates)
    cdef _pull(self)
    @cython.locals(subgraph=Subgraph)
    cpdef _share_needed(self)
    cpdef bint _is_sending(self) except -1
