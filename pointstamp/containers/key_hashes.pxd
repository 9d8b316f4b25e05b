cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef uint64_t _MASK
cdef uint64_t _GAMMA
cdef uint64_t _FIRST
cdef uint64_t _SECOND
cdef uint64_t _STEP
cdef uint64_t _TEXT
cdef uint64_t _NULL_HASH
cdef uint64_t _EMPTY_HASH
cdef bint _IS_PLAIN
cdef object _by_type
cdef double _HALF
cdef object _PACK


cdef uint64_t _mix(uint64_t word) noexcept

@cython.locals(word=uint64_t, k=Py_ssize_t)
cdef uint64_t _word(const unsigned char* data, Py_ssize_t start, Py_ssize_t stop) noexcept

@cython.locals(hash_=uint64_t, at=Py_ssize_t, stop=Py_ssize_t)
cdef uint64_t _hash_octets(const unsigned char* data, Py_ssize_t n_bytes) noexcept

cpdef uint64_t stable_hash(object key) except? 0

@cython.locals(number=int64_t)
cdef uint64_t _hash_int(object key) except? 0

@cython.locals(octets=bytes)
cdef uint64_t _hash_text(str text) except? 0

@cython.locals(whole=int64_t, octets=bytes)
cdef uint64_t _hash_float(double value) except? 0

@cython.locals(hash_=uint64_t, i=Py_ssize_t)
cdef uint64_t _hash_tuple(tuple parts) except? 0

cdef uint64_t _hash_other(object key) except? 0

cpdef bint is_its_own_key(object key) except -1

@cython.locals(i=Py_ssize_t)
cpdef hash_into(list keys, uint64_t[::1] hashes)

@cython.locals(place=uint64_t)
cpdef list split_by_hash(list records, object key, uint64_t n_parts)

@cython.locals(place=Py_ssize_t)
cpdef list split_by_number(list records, object to, Py_ssize_t n_parts, object checked)
