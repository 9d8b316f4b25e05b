cimport cython

cdef Py_ssize_t _CAPACITY


cdef class Buffer:
    cdef readonly Py_ssize_t n
    cdef readonly object of
    cdef long long _offset
    cdef object _on_full
    cdef Py_ssize_t _width
    cdef long long[::1] _numbers
    cdef long long[::1] _times
    cdef list _other_times
    cdef list _texts_of
    cdef object _row
    cdef object _schema

    @cython.locals(first=Py_ssize_t)
    cpdef add(
        self, long long at, long long a, long long b, long long c, long long d, long long e
    )
    cpdef add_at(
        self,
        object time,
        long long at,
        long long a,
        long long b,
        long long c,
        long long d,
        long long e,
    )
    cpdef _forget(self)
