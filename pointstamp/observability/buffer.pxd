cimport cython
from cpython.pythread cimport PyThread_get_thread_ident as _thread_in_c

cdef Py_ssize_t _CAPACITY
cdef int _ZERO
cdef int _MINUS


@cython.locals(
    begin=Py_ssize_t,
    at=Py_ssize_t,
    place=Py_ssize_t,
    length=Py_ssize_t,
    i=Py_ssize_t,
    number="long long",
    rest="unsigned long long",
    left="unsigned long long",
)
cdef _write_digits(long long[::1] numbers, int[::1] ends, unsigned char[::1] characters)


@cython.final
cdef class Buffer:
    cdef readonly Py_ssize_t n
    cdef readonly object of
    cdef long long _offset
    cdef object _on_full
    cdef Py_ssize_t _width
    cdef bint _is_compiled
    cdef bint _is_busy
    cdef unsigned long long _owner
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
    cpdef add_number(
        self,
        long long time,
        long long at,
        long long a,
        long long b,
        long long c,
        long long d,
        long long e,
    )
    cpdef bint is_open(self) except -1
    cdef _add_other(self, object time)
    cdef unsigned long long _thread(self) except? 0
    cpdef _forget(self)
