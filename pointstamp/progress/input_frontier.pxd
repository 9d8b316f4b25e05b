cimport cython

from pointstamp.progress.antichain cimport MutableAntichain
from pointstamp.progress.change_batch cimport ChangeBatch, as_number
from pointstamp.progress.few_counts cimport FewCounts

cdef int _INTEGERS
cdef int _PAIRS
cdef long long _BEYOND


cdef class InputFrontier:
    cdef FewCounts _few
    cdef MutableAntichain _counts
    cdef long long _outer
    cdef long long _inner
    cdef bint _pairs
    cdef object _timestamp
    # With the head of the garbage collector a whole number of lines; see `FewCounts`.
    cdef long long _room[5]

    @cython.locals(few=FewCounts, n=Py_ssize_t, place=Py_ssize_t, at=Py_ssize_t)
    cpdef take(self, ChangeBatch batch)
    cpdef list elements(self)
    cpdef change(self, object time, long long change)
    cpdef bint less_equal(self, object time) except -1
    cpdef bint less_than(self, object time) except -1
    cpdef bint is_empty(self) except -1
    cdef MutableAntichain _as_objects(self)
    cdef bint _reads(self, object time) except -1
    cpdef bint less_than_number(self, long long number) except -1
