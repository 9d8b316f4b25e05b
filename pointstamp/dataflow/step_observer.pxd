from libc.stdint cimport int64_t


cdef class StepObserver:
    cpdef int64_t now(self) except? -1
    cpdef visited(self, Py_ssize_t scope, long long began)
    cpdef progress_sent(self, Py_ssize_t scope, Py_ssize_t n_updates)
    cpdef progress_received(self, Py_ssize_t scope, Py_ssize_t sender, Py_ssize_t n_updates)
    cpdef tick(self)
