cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.collections.spine cimport SpineReader
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cdef class _JoinLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef SpineReader _left
    cdef SpineReader _right
    cdef Py_ssize_t _n_key
    cdef object _forward
    cdef object _backward
    cdef tuple _texts
    cdef object _name

    @cython.locals(output=Output, held=Capability, one=Input, other=Input)
    cpdef run(self, list inputs, list outputs)
    cdef _acknowledge(self, list lefts, list rights)
    cdef _pairs(self, object changes, list kept, object recipe)


cdef list _batches(object messages)
