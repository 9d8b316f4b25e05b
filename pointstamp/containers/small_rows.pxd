cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef int _NULL
cdef int _TRUE
cdef int _FALSE
cdef int _SHORT
cdef int _LONG
cdef int _REAL
cdef int _TEXT
cdef int _OCTETS
cdef int _TUPLE
cdef int _MAX_DEPTH
cdef Py_ssize_t _MAX_LENGTH
cdef Py_ssize_t _MAX_PARTS
cdef bint _IS_PLAIN
cdef object _pack_double
cdef object _unpack_double


cpdef Py_ssize_t pack_rows(
    unsigned char[::1] octets, Py_ssize_t at, Py_ssize_t stop, object tag, list batch
) except -2

cpdef Py_ssize_t pack_columns_head(
    unsigned char[::1] octets, Py_ssize_t at, Py_ssize_t stop, object tag, bytes kind, bytes header
) except -2

cdef Py_ssize_t _pack(
    unsigned char[::1] octets, Py_ssize_t at, Py_ssize_t stop, object value, int depth
) except -2

@cython.locals(number=int64_t)
cdef Py_ssize_t _pack_int(unsigned char[::1] octets, Py_ssize_t at, object value) except -2

@cython.locals(n_parts=Py_ssize_t, i=Py_ssize_t)
cdef Py_ssize_t _pack_tuple(
    unsigned char[::1] octets, Py_ssize_t at, Py_ssize_t stop, tuple parts, int depth
) except -2

@cython.locals(n_bytes=Py_ssize_t)
cdef Py_ssize_t _pack_octets(
    unsigned char[::1] octets, Py_ssize_t at, Py_ssize_t stop, int code, bytes data
) except -2

@cython.locals(i=int)
cdef void _put(unsigned char[::1] octets, Py_ssize_t at, uint64_t number, int n_bytes) noexcept

@cython.locals(i=Py_ssize_t)
cdef Py_ssize_t _copy(
    unsigned char[::1] octets, Py_ssize_t at, const unsigned char* data, Py_ssize_t n_bytes
) noexcept


@cython.final
cdef class RowsReader:
    cdef object _memory
    cdef unsigned char[::1] _octets
    cdef Py_ssize_t _at
    cdef Py_ssize_t _stop

    cpdef tuple read(self, Py_ssize_t at, Py_ssize_t stop)
    cpdef tuple read_columns(self, Py_ssize_t at, Py_ssize_t stop)
    cdef list _values(self, long long n)
    @cython.locals(code=int)
    cdef _value(self)
    @cython.locals(at=Py_ssize_t, number=uint64_t, i=int)
    cdef uint64_t _number(self, int n_bytes) except? 77
    @cython.locals(number=uint64_t, sign=uint64_t)
    cdef int64_t _signed(self, int n_bytes) except? -77
    @cython.locals(at=Py_ssize_t)
    cdef bytes _data(self, Py_ssize_t n_bytes)
    cdef int _pass(self, Py_ssize_t n_bytes) except -1
