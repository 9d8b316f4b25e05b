cimport cython

from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output


cdef class _Concatenate(BuiltInLogic):
    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _Divide(BuiltInLogic):
    cdef object _function

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _DivideWhole(BuiltInLogic):
    cdef object _predicate

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)
