cimport cython


cdef class RingWriter:
    cdef unsigned long long[::1] _words
    cdef object _memory
    cdef object _fence
    cdef Py_ssize_t _start
    cdef Py_ssize_t _tail_word
    cdef Py_ssize_t _head_word
    cdef Py_ssize_t _starved_word
    cdef long long _tail
    cdef long long _head
    cdef long long _published

    @cython.locals(
        n_bytes="long long", n_whole="long long", tail="long long", at="long long",
        n_skipped="long long",
    )
    cpdef bint put(self, unsigned long long what, object data) except *
    @cython.locals(n_whole="long long", rest="long long", needed="long long")
    cpdef bint has_room_for(self, long long n_bytes) except *
    cpdef publish(self)
    cpdef bint starve(self) except *


cdef class RingReader:
    cdef unsigned long long[::1] _words
    cdef object _memory
    cdef object _fence
    cdef Py_ssize_t _start
    cdef Py_ssize_t _tail_word
    cdef Py_ssize_t _head_word
    cdef Py_ssize_t _starved_word
    cdef long long _head
    cdef long long _released
    cdef long long _tail
    cdef readonly int kind
    cdef readonly int channel

    cpdef look(self)
    @cython.locals(
        head="long long", at="long long", word="unsigned long long", n_bytes="long long",
    )
    cpdef bytes take(self)
    cpdef bint release(self) except *
