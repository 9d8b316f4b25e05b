cimport cython

from pointstamp.collections.spine cimport Spine
from pointstamp.containers.updates cimport Updates
from pointstamp.dataflow.capability cimport Capability, SendRight
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.stash_core cimport StashCore


cpdef send_rows(Output output, SendRight held, object rows, tuple texts)


cdef class _ArrangeLogic(BuiltInLogic):
    cdef StashCore _stash
    cdef Spine _spine
    cdef tuple _texts
    cdef object _name
    cdef object _in_order

    @cython.locals(spine=Spine, output=Output, held=Capability, batch=Updates)
    cpdef run(self, list inputs, list outputs)
