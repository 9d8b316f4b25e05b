cimport cython

from pointstamp.progress.activation cimport Activation
from pointstamp.progress.change_batch cimport ChangeBatch

cdef bint _IS_COMPILED


cdef class CapabilityCounts:
    # What each change looks at comes first, on one line of the cache; see `FewCounts`.
    cdef Activation _activation
    cdef readonly object watcher
    cdef readonly ChangeBatch changes
    cdef readonly Py_ssize_t n_held
    cdef readonly bint is_dropped
    cdef bint _is_int
    cdef bint _is_pair
    cdef readonly object operator
    cdef readonly Py_ssize_t output
    cdef readonly object timestamp
    cdef object _late
    cdef list _collected
    cdef object _collected_first

    cpdef Capability add(self, object time)
    cpdef remove(self, object time)
    cpdef collected(self, object time)
    @cython.locals(collected=list)
    cpdef bint settle(self) except -1
    cpdef settle_late(self)
    cpdef abandon(self)
    cpdef move(self, object time, object new_time)
    cpdef check_not_before(self, object time, object new_time, object what)


cdef class SendRight:
    cdef readonly object time

    cpdef check(self, object what, CapabilityCounts counts=*)


cdef class Capability(SendRight):
    cdef readonly CapabilityCounts _counts
    cdef readonly bint live

    cpdef Capability delayed(self, object time)
    cpdef downgrade(self, object time)
    cpdef drop(self)
    cpdef check(self, object what, CapabilityCounts counts=*)


cdef class ReceivingPort:
    cdef readonly object name
    cdef readonly Py_ssize_t port
    cdef readonly Py_ssize_t round
    cdef readonly list capabilities
    cdef readonly object summaries
    cdef readonly set stays
    cdef CapabilityCounts sends_to


cdef class InputCapability(SendRight):
    cdef ReceivingPort _input
    cdef Py_ssize_t _round
    cdef CapabilityCounts _sends_to

    cpdef Capability retain(self, Py_ssize_t output=*)
    cpdef Capability delayed(self, object time, Py_ssize_t output=*)
    cpdef check(self, object what, CapabilityCounts counts=*)
    cdef CapabilityCounts _counts(self, object what, Py_ssize_t output, CapabilityCounts wanted=*)
    cdef _arrives(self, Py_ssize_t output, object wanted=*)


@cython.locals(made=InputCapability)
cpdef InputCapability received(object time, ReceivingPort input_)
@cython.locals(made=Capability)
cdef Capability _counted(object time, CapabilityCounts counts)
