cimport cython

from pointstamp.dataflow.channels cimport Queue
from pointstamp.dataflow.step_observer cimport StepObserver
from pointstamp.progress.subgraph cimport Subgraph
from pointstamp.runtime.installed_dataflow cimport (
    ActiveDataflows,
    InstalledDataflow,
    first_logged,
)
from pointstamp.runtime.progress_exchange cimport ProgressExchange

cdef long long _POLL_EVERY


cdef class Worker:
    cdef dict __dict__
    cdef object __weakref__
    cdef readonly object communicator
    cdef readonly object environment
    cdef public object _receive
    cdef public object _flush
    cdef object _calls
    cdef object _run_idle
    cdef dict _arrivals
    cdef Py_ssize_t _peers
    cdef readonly object _control
    cdef readonly ProgressExchange _progress
    cdef readonly dict _dataflows
    cdef ActiveDataflows _active
    cdef readonly dict _subgraphs
    cdef readonly object timers
    cdef list _alarms
    cdef readonly bint _is_building
    cdef readonly bint _is_stepping
    cdef readonly bint is_parked
    cdef readonly bint is_waiting
    cdef readonly long long n_steps
    cdef long long _look_at
    cdef long long _measure_at
    cdef object _watchdog
    cdef readonly object _snapshots
    cdef public object texts
    cdef dict _in_flight
    cdef set _discountable
    cdef readonly object _failure
    cdef StepObserver _log

    @cython.locals(began=double)
    cpdef bint step(self) except -1
    cpdef bint step_or_park(self, object timeout_s=*) except -1
    cdef _take_in(self)
    @cython.locals(
        dataflow=InstalledDataflow, root=Subgraph, log=StepObserver, began="long long"
    )
    cdef _visit_dataflows(self)
    cdef _answer_calls(self)
    @cython.locals(queue=Queue)
    cdef _discount(self)
