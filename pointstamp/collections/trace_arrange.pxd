cimport cython

from pointstamp.collections.lattice cimport TimeEncoding
from pointstamp.collections.trace cimport Trace
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cdef class _ArrangeTraceLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef Trace _trace
    cdef TimeEncoding _encoding
    cdef object _name

    @cython.locals(output=Output, held=Capability, batch=Updates)
    cpdef run(self, list inputs, list outputs)
