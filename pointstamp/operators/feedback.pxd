cimport cython

from pointstamp.dataflow.capability cimport InputCapability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.progress.step cimport Step


cdef class _GoRound(BuiltInLogic):
    cdef Step _step
    cdef object _watch
    cdef bint _has_rounds
    cdef bint _is_counted
    cdef readonly object n_rounds

    @cython.locals(input_=Input, output=Output, item=tuple, has_later=bint)
    cpdef run(self, list inputs, list outputs)


cdef class _Admit(BuiltInLogic):
    cdef _GoRound _go_round
    cdef object _new_batches
    cdef dict _waiting

    @cython.locals(
        has_later=bint, port=Py_ssize_t, input_=Input, output=Output, received=tuple,
        held=InputCapability,
    )
    cpdef run(self, list inputs, list outputs)

    cdef _wait(self, object held, Py_ssize_t port, object batch)

    @cython.locals(port=Py_ssize_t)
    cdef _let_in(self, object until, list outputs)
