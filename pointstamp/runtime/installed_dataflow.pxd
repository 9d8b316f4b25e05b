cimport cython

from pointstamp.progress.activation cimport Activation
from pointstamp.progress.subgraph cimport Subgraph


cdef class DataflowActivation(Activation)


cdef class InstalledDataflow


@cython.final
cdef class ActiveDataflows:
    cdef readonly Py_ssize_t n
    cdef InstalledDataflow _first
    cdef object _later

    cpdef add(self, InstalledDataflow dataflow)
    @cython.locals(first=InstalledDataflow)
    cpdef InstalledDataflow take(self)


cdef class InstalledDataflow:
    # What a visit looks at comes first.
    cdef public bint is_queued
    cdef readonly bint is_logged
    cdef public Subgraph root
    cdef public set agreed
    cdef readonly DataflowActivation activation
    cdef public Py_ssize_t number
    cdef public object name
    cdef public object structure
    cdef list _lines
    cdef public list scopes
    cdef public list channels
    cdef public object closers
    cdef public object backpressure
    cdef public list inputs
    cdef public bint is_dropped
    cdef public object durable_state
    cdef public object beside
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[4]


cdef class DataflowActivation(Activation):
    cdef InstalledDataflow _dataflow
    cdef ActiveDataflows _active

    cpdef ask(self)


@cython.locals(dataflow=InstalledDataflow)
cpdef InstalledDataflow first_logged(dict dataflows)
