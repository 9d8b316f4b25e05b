cimport cython

from pointstamp.dataflow.handles cimport BuiltInLogic, Frontier, Input


cdef class Probe:
    cdef list _frontiers
    cdef readonly list listeners
    cdef list _reasons

    @cython.locals(frontier=Frontier)
    cpdef bint less_than(self, object time) except -1
    @cython.locals(frontier=Frontier)
    cpdef bint less_equal(self, object time) except -1


cdef class _Watching(BuiltInLogic):
    cdef list _listeners
    cdef object _on_batch

    @cython.locals(input_=Input, item=tuple)
    cpdef run(self, list inputs, list outputs)
