cimport cython

from pointstamp.containers.builder cimport Builder
from pointstamp.dataflow.capability cimport CapabilityCounts, ReceivingPort, SendRight, received
from pointstamp.dataflow.channels cimport Queue, Tee
from pointstamp.progress.input_frontier cimport InputFrontier


@cython.final
cdef class Frontier:
    cdef InputFrontier _counts

    cpdef bint less_equal(self, object time) except -1
    cpdef bint less_than(self, object time) except -1
    cpdef bint is_empty(self) except -1


@cython.final
cdef class Input(ReceivingPort):
    cdef readonly Queue _queue
    cdef readonly Frontier frontier

    cpdef bint end_round(self) except -1
    cpdef tuple pull(self)
    cpdef bint put_off_later_rounds(self) except -1
    cpdef next(self)
    cpdef abandon(self)


cdef class Session


@cython.final
cdef class Output:
    cdef readonly Tee _tee
    cdef readonly Builder _builder
    cdef readonly object _time
    cdef readonly CapabilityCounts capabilities

    @cython.locals(right=SendRight, made=Session)
    cpdef session(self, object capability)
    cpdef push(self, object time, object batch)
    @cython.locals(builder=Builder)
    cpdef Builder at(self, object time)
    cpdef flush(self)
    cpdef abandon(self)


cdef class BuiltInLogic:
    cpdef run(self, list inputs, list outputs)


@cython.final
cdef class Session:
    cdef SendRight _capability
    cdef Output _output

    cpdef give(self, object record)
    cpdef give_batch(self, object batch)
    cdef Builder _builder(self)
