cdef class LocalOperator:
    cpdef push_external_progress(self, object changes)
    cpdef pull_internal_progress(self)
    cpdef bint holds(self)
    cpdef abandon(self)
