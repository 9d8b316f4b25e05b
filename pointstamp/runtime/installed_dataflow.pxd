from pointstamp.progress.subgraph cimport Subgraph


cdef class InstalledDataflow:
    cdef public Py_ssize_t number
    cdef public object name
    cdef public list lines
    cdef public Subgraph root
    cdef public list scopes
    cdef public list channels
    cdef public object closers
    cdef public bint is_queued
    cdef readonly bint is_logged
    cdef public object backpressure
    cdef public set agreed
    cdef public list inputs
    cdef public bint is_dropped
    cdef public object durable_state
    cdef public object beside
