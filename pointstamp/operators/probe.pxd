cimport cython

from pointstamp.dataflow.handles cimport Frontier


cdef class Probe:
    cdef list _frontiers
    cdef readonly list listeners
    cdef list _reasons

    @cython.locals(frontier=Frontier)
    cpdef bint less_than(self, object time)
    @cython.locals(frontier=Frontier)
    cpdef bint less_equal(self, object time)
