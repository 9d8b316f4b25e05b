from pointstamp.dataflow.handles cimport BuiltInLogic
from pointstamp.dataflow.notificator cimport Notificator


cdef class _Logic(BuiltInLogic):
    cdef object _logic
    cdef Notificator _notificator
    cdef tuple _handles

    cpdef run(self, list inputs, list outputs)
