cimport cython

from pointstamp.dataflow.handles cimport Input, Output


cdef class _Transform:
    cdef object _function

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)
