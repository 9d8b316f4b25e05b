cimport cython

from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.progress.step cimport Step


cdef class _GoRound(BuiltInLogic):
    cdef Step _step
    cdef object _watch
    cdef bint _has_rounds

    @cython.locals(input_=Input, output=Output, item=tuple, has_later=bint)
    cpdef run(self, list inputs, list outputs)


cdef class _Admit(BuiltInLogic):
    cdef _GoRound _go_round
    cdef list _waiting

    @cython.locals(has_later=bint, port=Py_ssize_t, came=list)
    cpdef run(self, list inputs, list outputs)

    cdef _let_in(self, list waiting, list around, list outputs)
