cimport cython

from pointstamp.dataflow.capability cimport CapabilityCounts
from pointstamp.dataflow.handles cimport BuiltInLogic, Input, Output
from pointstamp.dataflow.notificator cimport Notificator
from pointstamp.progress.activation cimport Activation
from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.input_frontier cimport InputFrontier
from pointstamp.progress.operate cimport DirectOperate, ProgressReport

cdef object _UNFINISHED


cdef class Operator(DirectOperate):
    # What each activation looks at comes first, so that it is in few lines of the cache.
    cdef public bint complete
    cdef readonly Activation activation
    cdef readonly list capabilities
    cdef BuiltInLogic _built_in
    cdef readonly list _inputs
    cdef readonly list _outputs
    cdef readonly list notificators
    cdef public object aligner
    cdef ProgressReport _idle
    cdef ProgressReport _active
    cdef object _logic
    cdef readonly object watcher
    cdef readonly list frontiers
    cdef object _call
    cdef readonly object name
    cdef readonly object timestamp
    cdef public Py_ssize_t inputs
    cdef public Py_ssize_t outputs
    cdef readonly list frontier_interest
    cdef readonly list initial
    cdef readonly object consumed
    cdef readonly object produced
    cdef readonly list _summaries
    cdef public object role
    cdef public object parameters
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[2]

    @cython.locals(
        port=Py_ssize_t,
        has_changed=bint,
        batch=ChangeBatch,
        frontier=InputFrontier,
    )
    cpdef push_external_progress(self, object changes)
    @cython.locals(input_=Input, notificator=Notificator, capabilities=CapabilityCounts, is_active=bint)
    cpdef ProgressReport pull_internal_progress(self)
    @cython.final
    @cython.locals(output=Output)
    cdef _run(self)
    @cython.final
    @cython.locals(idle=ProgressReport)
    cdef ProgressReport _report(self, bint is_active)
    @cython.locals(capabilities=CapabilityCounts)
    cpdef bint holds(self) except -1
    cpdef bint is_complete(self) except -1
    # `object`, as it hands a method of it on: of a typed one Cython would take the bare C
    # function, whose first argument is of another type than the caller's.
    cpdef collected(self, object counts)
    @cython.locals(output=Output, input_=Input, capabilities=CapabilityCounts)
    cpdef abandon(self)
    cpdef let_go(self)
