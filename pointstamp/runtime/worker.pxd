cimport cython

from pointstamp.progress.subgraph cimport Subgraph


cdef class _Dataflow:
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


cdef class Worker:
    cdef dict __dict__
    cdef object __weakref__
    cdef readonly object communicator
    cdef readonly object environment
    cdef object _receive
    cdef object _flush
    cdef object _calls
    cdef dict _arrivals
    cdef list _outbox
    cdef Py_ssize_t _peers
    cdef object _control
    cdef object _progress
    cdef readonly dict _dataflows
    cdef Py_ssize_t _n_built
    cdef list _active
    cdef readonly dict _subgraphs
    cdef readonly object timers
    cdef list _alarms
    cdef dict _by_name
    cdef dict _uncompared
    cdef object _drops
    cdef bint _waits_for_all
    cdef bint _has_returned
    cdef dict _structures
    cdef dict _finished
    cdef bint _is_building
    cdef readonly bint _is_stepping
    cdef readonly bint is_parked
    cdef object _watchdog
    cdef object _snapshots
    cdef dict _in_flight
    cdef set _discountable
    cdef dict _told_early
    cdef object _failure
    cdef object _log

    cpdef bint step(self) except -1
    cpdef bint step_or_park(self, object timeout_s=*) except -1
    cdef _activate(self, _Dataflow dataflow)
    @cython.locals(subgraph=Subgraph)
    cdef _take_in(self)
    @cython.locals(dataflow=_Dataflow, active=list, root=Subgraph)
    cdef _visit_dataflows(self)
    cdef _send_progress(self)
    cdef _answer_calls(self)
