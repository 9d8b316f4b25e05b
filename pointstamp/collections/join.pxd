cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.collections.spine cimport SpineReader
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cdef class _JoinLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef object _turns
    cdef bint _is_under_way
    cdef Py_ssize_t _fuel
    cdef tuple _readers
    cdef SpineReader _left
    cdef SpineReader _right
    cdef Py_ssize_t _n_key
    cdef object _forward
    cdef object _backward
    cdef tuple _texts
    cdef object _name

    @cython.locals(output=Output, held=Capability, one=Input, other=Input)
    cpdef run(self, list inputs, list outputs)
    cdef list _pair(self, Output output, Capability held)
    @cython.locals(end=cython.Py_ssize_t)
    cdef _send(
        self, Output output, Capability held, object changes, list kept, object recipe, list rest
    )
    cdef _acknowledge(self, list lefts, list rights)


cdef list _batches(object messages)
