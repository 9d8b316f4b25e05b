cdef set _sized

cpdef kind_of(batch)
cpdef Py_ssize_t n_records(batch) except -1
