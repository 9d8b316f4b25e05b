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

    @cython.locals(input_=Input, output=Output, held=Capability, batch=Updates)
    cpdef run(self, list inputs, list outputs)
