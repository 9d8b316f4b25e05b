cimport cython

from pointstamp.progress.change_batch cimport ChangeBatch


cdef class CapabilityCounts:
    cdef readonly object operator
    cdef readonly Py_ssize_t output
    cdef readonly object timestamp
    cdef public object changed
    cdef readonly object watcher
    cdef readonly ChangeBatch changes
    cdef readonly Py_ssize_t n_held
    cdef readonly bint is_dropped
    cdef public bint is_at_work
    cdef object _late
    cdef bint _is_int
    cdef list _collected

    cpdef Capability add(self, object time)
    cpdef remove(self, object time)
    cpdef collected(self, object time)
    @cython.locals(collected=list)
    cpdef bint settle(self) except -1
    cpdef settle_late(self)
    cpdef abandon(self)
    cpdef move(self, object time, object new_time)
    cpdef check_not_before(self, object time, object new_time, object what)


cdef class Capability:
    cdef readonly object time
    cdef readonly CapabilityCounts _counts
    cdef readonly bint live

    cpdef Capability delayed(self, object time)
    cpdef downgrade(self, object time)
    cpdef drop(self)
    cpdef check(self, object what, object counts=*)


cdef class InputCapability:
    cdef readonly object time
    cdef object _input
    cdef Py_ssize_t _round

    cpdef Capability retain(self, Py_ssize_t output=*)
    cpdef Capability delayed(self, object time, Py_ssize_t output=*)
    cpdef check(self, object what, object counts=*)
    cdef CapabilityCounts _counts(self, object what, Py_ssize_t output, object wanted=*)
    cdef _arrives(self, Py_ssize_t output, object wanted=*)
