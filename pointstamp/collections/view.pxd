from pointstamp.containers.updates cimport Updates


cdef class _Uses:
    cdef object _lock
    cdef object _acquire
    cdef object _release
    cdef Py_ssize_t _n

    cpdef bint keep_off(self) except -1
    cpdef let_in(self)


cdef class _Result:
    cdef object _name
    cdef object _schema
    cdef list _new
    cdef object _none
    cdef list _late
    cdef Py_ssize_t _n_late
    cdef object _kept

    cpdef take(self)
    cpdef snapshot(self)
    cdef _catch_up(self)
    cdef _overflow(self, object error)
    cpdef _note(self, object time, Updates batch)
