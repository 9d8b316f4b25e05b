cdef class Updates:
    cdef readonly object rows
    cdef readonly tuple texts
