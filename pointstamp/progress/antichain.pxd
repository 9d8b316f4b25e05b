cimport cython

from pointstamp.progress.staircase cimport Staircase

cdef Py_ssize_t _SLACK


cdef class MutableAntichain:
    cdef object _less_equal
    cdef object _key
    cdef bint _total
    cdef bint _natural
    cdef bint _pairs
    cdef readonly list _times
    cdef list _numbers
    cdef Py_ssize_t _first
    cdef Py_ssize_t _end
    cdef bint _found
    cdef list _only
    cdef list _none
    cdef dict _counts
    cdef Staircase _staircase
    cdef public list frontier
    cdef public list gone
    cdef public list came
    cdef list _one_gone
    cdef list _one_came

    @cython.locals(
        place=Py_ssize_t, before="long long", after="long long", is_first=bint
    )
    cpdef bint change(self, object time, long long change) except -1
    @cython.locals(place=Py_ssize_t)
    cpdef long long count(self, object time)
    cpdef Py_ssize_t n_times(self) except -1
    cpdef bint less_equal(self, object time) except -1
    cpdef bint less_than(self, object time) except -1
    cpdef bint is_minimal(self, object time) except -1
    @cython.locals(staircase=Staircase, has_changed=bint)
    cdef bint _change_pair(self, object time, long long change) except -1
    cdef _count_as_others(self)
    cdef bint _is_before(self, object a, object b) except -1
    @cython.locals(counts=dict, before="long long")
    cdef long long _add(self, object time, long long change)
    @cython.locals(times=list, low=Py_ssize_t, middle=Py_ssize_t, high=Py_ssize_t)
    cdef Py_ssize_t _find(self, object time) except -1
    @cython.locals(end=Py_ssize_t)
    cdef _insert(self, Py_ssize_t place, object time, long long number)
    @cython.locals(last=Py_ssize_t)
    cdef int _remove(self, Py_ssize_t place) except -1
    @cython.locals(times=list, numbers=list, n=Py_ssize_t)
    cdef _move_down(self)
    @cython.locals(frontier=list)
    cdef bint _enter(self, object time) except -1
    cdef bint _exit(self, object time) except -1
    @cython.locals(only=list)
    cdef bint _enter_total(self, object time, bint is_first) except -1
    @cython.locals(numbers=list, place=Py_ssize_t, end=Py_ssize_t)
    cdef bint _exit_total(self, object time, bint is_first) except -1
    cdef int _show_only(self, object time) except -1
    cdef int _note_gone(self, object time) except -1
    cdef int _note_came(self, object time) except -1
