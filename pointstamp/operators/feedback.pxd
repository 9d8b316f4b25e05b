cimport cython

from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.progress.step cimport Step


cdef class _GoRound(BuiltInLogic):
    cdef Step _step
    cdef object _watch
    cdef bint _has_rounds

    @cython.locals(input_=Input, output=Output, item=tuple, has_later=bint)
    cpdef run(self, list inputs, list outputs)
