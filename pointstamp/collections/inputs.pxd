from pointstamp.collections.row_encoder cimport RowEncoder
from pointstamp.containers.updates cimport Updates
from pointstamp.operators.sources cimport InputHandle


cdef class CollectionInput:
    cdef InputHandle _handle
    cdef readonly object schema
    cdef object _where
    cdef object _texts
    cdef RowEncoder _encoder
    cdef tuple _texts_among
    cdef readonly bint append_only

    cpdef insert(self, object rows)
    cpdef delete(self, object rows)
    cpdef update(self, object changes)
    cpdef advance_to(self, object time)
    cpdef close(self)
    cdef Updates _updates(self, object rows, long long diff)
    cdef _send(self, Updates updates)
