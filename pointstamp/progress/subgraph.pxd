cimport cython

from pointstamp.progress.activation cimport ActivatedScope, Activation
from pointstamp.progress.antichain cimport MutableAntichain
from pointstamp.progress.change_batch cimport ChangeBatch
from pointstamp.progress.operate cimport CountObserver, DirectOperate, ProgressReport
from pointstamp.progress.reachability cimport Tracker
from pointstamp.progress.scope_child cimport FrontierListener, ScopeChild
from pointstamp.progress.turns cimport Turns


cdef int _INTEGERS
cdef int _PAIRS



cdef class Subgraph(ActivatedScope):
    # What each round looks at comes first, so that it is in few lines of the cache.
    cdef bint _is_at_work
    cdef bint _is_in_round
    cdef readonly bint is_active
    cdef readonly bint eager
    cdef bint _is_same
    cdef bint _keeps_numbers
    cdef Py_ssize_t _position
    cdef readonly long long n_changes
    cdef Py_ssize_t _n_holders
    cdef Py_ssize_t _n_incomplete
    cdef readonly Py_ssize_t peers
    cdef readonly Py_ssize_t inputs
    cdef readonly Py_ssize_t outputs
    cdef readonly tuple entered
    cdef readonly Tracker _tracker
    cdef readonly dict _views
    cdef Turns _next
    cdef Turns _round
    cdef readonly tuple _by_number
    cdef tuple _listeners
    cdef CountObserver _observer
    cdef readonly object accumulation
    cdef ChangeBatch _held_back
    cdef list _left
    cdef list _unreceipted
    cdef Activation _activation
    cdef ProgressReport _idle_progress
    cdef ProgressReport _active_progress
    cdef list _leads_out
    cdef long long[::1] _edges_of
    cdef list _consumers
    cdef list _ports
    cdef tuple _internal
    cdef tuple _consumed
    cdef tuple _produced
    cdef readonly object refinement
    cdef readonly tuple _output_capabilities
    cdef readonly object topology
    cdef public object name
    cdef readonly object timestamp
    cdef readonly object outer
    cdef public object frontier_interest
    cdef readonly object children
    cdef readonly list edges
    cdef object _share_updates
    cdef list _initial
    cdef set _loops

    @cython.locals(port=Py_ssize_t, count="long long")
    cpdef push_external_progress(self, object changes)
    cpdef ProgressReport pull_internal_progress(self)
    cpdef bint holds(self) except -1
    cpdef bint is_complete(self) except -1
    @cython.locals(location=Py_ssize_t, change="long long")
    cpdef bint accept(self, object updates) except -1
    cpdef share_needed(self)
    @cython.locals(has_changes=bint, asked=ScopeChild)
    cpdef activate(self, Py_ssize_t child)
    @cython.locals(child=ScopeChild)
    cpdef abandon(self)
    @cython.locals(child=ScopeChild)
    cpdef let_go(self)
    @cython.locals(
        port=Py_ssize_t,
        place=Py_ssize_t,
        location=Py_ssize_t,
        count="long long",
        batch=ChangeBatch,
    )
    @cython.final
    cdef int _report_entered(self) except -1
    @cython.locals(view=Tracker)
    @cython.final
    cdef int _deliver_frontiers(self, bint wake) except -1
    @cython.locals(
        moved=Py_ssize_t,
        at=Py_ssize_t,
        location=Py_ssize_t,
        node=Py_ssize_t,
        listener=FrontierListener,
        child=ScopeChild,
        change="long long",
        outer="long long",
        inner="long long",
    )
    @cython.final
    cdef _deliver(self, Tracker tracker, Py_ssize_t viewer, bint wake)
    @cython.locals(node=Py_ssize_t)
    @cython.final
    cdef int _visit_children(self) except -1
    @cython.locals(operator=DirectOperate, progress=ProgressReport)
    @cython.final
    cdef int _visit(self, ScopeChild child) except -1
    @cython.locals(
        batch=ChangeBatch, shared=bint, location=Py_ssize_t, first_output=Py_ssize_t
    )
    @cython.final
    cdef int _take_report(self, ScopeChild child, ProgressReport progress) except -1
    @cython.locals(place=Py_ssize_t)
    @cython.final
    cdef int _take_changes(
        self, ChangeBatch batch, Py_ssize_t location, int sign, bint shared, Py_ssize_t own
    ) except -1
    @cython.locals(is_direct=bint, place=Py_ssize_t, edge=Py_ssize_t, target=Py_ssize_t)
    @cython.final
    cdef int _take_produced(self, ChangeBatch batch, Py_ssize_t source, bint shared) except -1
    @cython.final
    cdef bint _has_numbers(self, ChangeBatch batch) except -1
    @cython.locals(
        outer="long long", inner="long long", change="long long", leaves=bint, at=ChangeBatch
    )
    @cython.final
    cdef int _report_number(
        self,
        ChangeBatch batch,
        Py_ssize_t place,
        Py_ssize_t location,
        long long factor,
        bint shared,
    ) except -1
    @cython.final
    cdef int _update_number(
        self, Py_ssize_t location, long long outer, long long inner, long long change
    ) except -1
    @cython.locals(is_holder=bint)
    @cython.final
    cdef int _note_state(self, ScopeChild child, bint holds, bint complete) except -1
    @cython.locals(
        batch=ChangeBatch, held=MutableAntichain, changes=ChangeBatch, change="long long"
    )
    @cython.final
    cdef int _collect_output_changes(self) except -1
    @cython.locals(location=Py_ssize_t, change="long long")
    @cython.final
    cdef _share(self)
    @cython.final
    cdef bint _holds_back(self) except -1
    @cython.final
    cdef bint _is_needed(self, Py_ssize_t location, object time, long long change) except -1
    @cython.locals(target=Py_ssize_t, copies="long long")
    @cython.final
    cdef _report_produced(self, Py_ssize_t source, object time, long long count, bint shared)
    @cython.final
    cdef _report(self, Py_ssize_t location, object time, long long change, bint shared, Py_ssize_t own)
    @cython.locals(port=Py_ssize_t)
    @cython.final
    cdef _apply(self, Py_ssize_t location, object time, long long change, Py_ssize_t own)
    @cython.final
    cdef _leave(self, Py_ssize_t output, object time, long long count)
    @cython.locals(
        place=Py_ssize_t,
        location=Py_ssize_t,
        outer="long long",
        inner="long long",
        change="long long",
    )
    @cython.final
    cdef _enter_capabilities(self, Py_ssize_t port, ChangeBatch changes)
    @cython.final
    cdef _to_outer(self, object time)
    @cython.locals(node=Py_ssize_t, view=Tracker)
    @cython.final
    cdef _update(self, Py_ssize_t location, object time, long long change, Py_ssize_t own)
