from libc.stdint cimport int64_t

from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.metrics.meters cimport DataflowMeter
from pointstamp.metrics.tick_clock cimport now_ns, ticks


cdef class WorkerMeter(StepObserver):
    cdef readonly object run
    cdef readonly object recorder
    cdef readonly Py_ssize_t index
    cdef readonly Py_ssize_t peers
    cdef readonly long long parks
    cdef readonly long long parked_ns
    cdef readonly long long began_ns
    cdef readonly dict dataflows
    cdef readonly object worker
    cdef StepObserver _log
    cdef dict _within
    cdef dict _names
    cdef dict _of_channels
    cdef long long _began
    cdef Py_ssize_t _visited_scope
    cdef DataflowMeter _visited

    cpdef int64_t now(self) except? -1
    cpdef visited(self, Py_ssize_t scope, long long began)
    cpdef progress_sent(self, Py_ssize_t scope, Py_ssize_t n_updates)
    cpdef progress_received(self, Py_ssize_t scope, Py_ssize_t sender, Py_ssize_t n_updates)
    cpdef tick(self)
