cimport cython

from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output


cdef class _Transform(BuiltInLogic):
    cdef object _function

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _EachBatch(BuiltInLogic):
    cdef object _function

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _LookAt(BuiltInLogic):
    cdef object _function

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _EachRecord(BuiltInLogic):
    cdef object _function
    cdef object _name

    @cython.locals(input_=Input, output=Output, item=tuple)
    cpdef run(self, list inputs, list outputs)


cdef class _TryTransform(BuiltInLogic):
    cdef object _function
    cdef object _policy
    cdef object _gives_parts

    cpdef run(self, list inputs, list outputs)
