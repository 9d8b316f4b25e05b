cimport cython

from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.progress.subgraph cimport Subgraph


cdef class ProgressExchange:
    cdef readonly object channel
    cdef readonly dict subgraphs
    cdef list _others
    cdef StepObserver _log
    cdef list _outbox

    @cython.locals(outbox=list)
    cpdef send(self)
    @cython.locals(subgraph=Subgraph)
    cdef _receive(self)
