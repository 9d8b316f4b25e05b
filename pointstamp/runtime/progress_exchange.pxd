cimport cython

from pointstamp.progress.subgraph cimport Subgraph


cdef class ProgressExchange:
    cdef readonly object channel
    cdef readonly dict subgraphs
    cdef list _others
    cdef object _log
    cdef list _outbox

    @cython.locals(outbox=list)
    cpdef send(self)
    @cython.locals(subgraph=Subgraph)
    cdef _receive(self)
