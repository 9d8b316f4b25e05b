cimport cython

from pointstamp.collections.arrange cimport send_rows
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cdef class _AggregateLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef object _log
    cdef object _state
    cdef object _empty_row
    cdef tuple _texts
    cdef Py_ssize_t _many
    cdef Py_ssize_t _most_parts
    cdef object _name

    @cython.locals(input_=Input, output=Output, held=Capability, batch=Updates, received=tuple)
    cpdef run(self, list inputs, list outputs)
