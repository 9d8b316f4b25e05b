cimport cython
from libc.string cimport memcpy
from cpython.pythread cimport PyThread_get_thread_ident as _thread_in_c

from pointstamp.observability.clock cimport LogClock
from pointstamp.progress.change_batch cimport as_number

cdef Py_ssize_t _CAPACITY
cdef long long _NO_PAIR
cdef long long _BEYOND
cdef bint _IS_LITTLE
cdef int _ZERO
cdef int _MINUS
cdef int _OPEN
cdef int _CLOSE
cdef int _COMMA
cdef int _SPACE


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline unsigned long long _eight_in_c(
    unsigned char[::1] characters, Py_ssize_t place
) noexcept:
    cdef unsigned long long eight
    memcpy(&eight, &characters[place], 8)
    return eight


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline void _put_eight_in_c(
    unsigned char[::1] characters, Py_ssize_t place, unsigned long long eight
) noexcept:
    memcpy(&characters[place], &eight, 8)


@cython.locals(
    begin=Py_ssize_t,
    length=Py_ssize_t,
    last=Py_ssize_t,
    shift=int,
    low="unsigned long long",
    high="unsigned long long",
    step="unsigned long long",
    was_begin=Py_ssize_t,
    at=Py_ssize_t,
    place=Py_ssize_t,
    i=Py_ssize_t,
    is_pair=bint,
    is_inner=int,
    outer="long long",
    was_outer="long long",
    inner="long long",
    was_inner="long long",
    tens="long long",
    was_tens="long long",
    number="long long",
    rest="unsigned long long",
    left="unsigned long long",
)
cdef _write_times(long long[::1] times, int[::1] ends, unsigned char[::1] characters)


@cython.final
cdef class Buffer:
    cdef readonly Py_ssize_t n
    cdef readonly object of
    cdef LogClock _clock
    cdef bint _has_pairs
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
    cdef list _dtypes

    @cython.locals(first=Py_ssize_t)
    cpdef add(
        self, long long at, long long a, long long b, long long c, long long d, long long e
    )
    @cython.locals(outer="long long", inner="long long")
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
    @cython.locals(first=Py_ssize_t)
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
    cpdef add_pair(
        self,
        long long outer,
        long long inner,
        long long at,
        long long a,
        long long b,
        long long c,
        long long d,
        long long e,
    )
    cpdef bint is_open(self) except -1
    cdef _add_other(self, object time)
    cdef _put(self, Py_ssize_t place, long long number)
    cdef unsigned long long _thread(self) except? 0
    cpdef _forget(self)
