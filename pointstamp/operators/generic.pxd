from pointstamp.dataflow.notificator cimport Notificator


cdef class _Logic:
    cdef object _logic
    cdef Notificator _notificator
    cdef tuple _handles

    cpdef run(self, list inputs, list outputs)
