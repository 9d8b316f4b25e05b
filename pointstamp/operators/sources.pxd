cimport cython

from pointstamp.containers.builder cimport Builder
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Output, Session
from pointstamp.progress.activation cimport Activation


@cython.final
cdef class InputHandle:
    cdef readonly object name
    cdef object _timestamp
    cdef bint _is_int
    cdef Capability _capability
    cdef Session _session
    cdef Output _output
    cdef Activation _activation
    cdef object _is_throttled
    cdef readonly bint is_closed
    cdef readonly bint is_dropped

    @cython.locals(builder=Builder)
    cpdef send(self, object record)
    cpdef send_batch(self, object batch)
    cpdef advance_to(self, object time)
    cpdef close(self)
    cpdef abandon(self)
    cdef _check(self, object what)


cdef class _Driven(BuiltInLogic):
    cpdef run(self, list inputs, list outputs)
