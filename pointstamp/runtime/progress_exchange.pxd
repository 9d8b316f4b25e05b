cimport cython

from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.progress.subgraph cimport Subgraph


cdef class ProgressExchange:
    cdef readonly object channel
    cdef readonly dict subgraphs
    cdef list _others
    cdef StepObserver _log
    cdef list _outbox
    cdef readonly list _holding
    cdef object _flush
    cdef object _now
    cdef readonly double _began
    cdef Py_ssize_t _n_early
    cdef public Py_ssize_t _n_reports

    @cython.locals(outbox=list)
    cpdef send(self)
    @cython.locals(subgraph=Subgraph)
    cdef _receive(self)
    @cython.locals(subgraph=Subgraph)
    cpdef _begin(self)
    cpdef _note_step(self)
    cpdef bint _is_sending(self) except -1
