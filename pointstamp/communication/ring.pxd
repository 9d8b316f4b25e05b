cimport cython

from pointstamp.communication.segment cimport Fence


cdef long long _MASK
cdef unsigned long long _SIZE_MASK
cdef unsigned long long _SKIP
cdef long long _RING_BYTES
cdef unsigned long long _MAX_CHANNEL


cpdef unsigned long long described(unsigned long long kind, unsigned long long channel) noexcept


@cython.final
cdef class RingWriter:
    cdef unsigned long long[::1] _words
    cdef object _memory
    cdef Fence _fence
    cdef Py_ssize_t _start
    cdef Py_ssize_t _tail_word
    cdef Py_ssize_t _head_word
    cdef Py_ssize_t _starved_word
    cdef long long _tail
    cdef long long _head
    cdef long long _published
    cdef long long _reserved
    cdef long long _at

    @cython.locals(n_bytes="long long", at="long long")
    cpdef bint put(self, unsigned long long what, object data) except -1
    @cython.locals(
        n_whole="long long", tail="long long", at="long long", n_skipped="long long"
    )
    cpdef Py_ssize_t reserve(self, long long n_bytes) except -2
    cpdef int commit(self, unsigned long long what, long long n_bytes) except -1
    @cython.locals(n_whole="long long", rest="long long", needed="long long")
    cpdef bint has_room_for(self, long long n_bytes) except -1
    cpdef Py_ssize_t n_unpublished(self) except -1
    cpdef int publish(self) except -1
    cpdef bint starve(self) except -1
    cpdef bint has_more_room(self) except -1


@cython.final
cdef class RingReader:
    cdef unsigned long long[::1] _words
    cdef object _memory
    cdef Fence _fence
    cdef Py_ssize_t _start
    cdef Py_ssize_t _tail_word
    cdef Py_ssize_t _head_word
    cdef Py_ssize_t _starved_word
    cdef long long _head
    cdef long long _released
    cdef long long _tail
    cdef readonly int kind
    cdef readonly int channel
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t n_bytes

    cpdef bint has_records(self) except -1
    cpdef int look(self) except -1
    cpdef bytes take(self)
    cpdef bytes data(self)
    @cython.locals(
        head="long long", at="long long", word="unsigned long long", n_bytes="long long",
    )
    cpdef bint advance(self) except -1
    cpdef bint release(self) except -1
